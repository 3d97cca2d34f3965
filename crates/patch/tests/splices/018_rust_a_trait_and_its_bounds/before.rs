pub trait T: Clone {
    fn a(&self) -> u8;
    fn b(&self) -> u8 {
        1
    }
}
