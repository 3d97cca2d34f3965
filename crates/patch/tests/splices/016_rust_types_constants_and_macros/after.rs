const A: u8 = 1;
const B: u8 = 3;
const C: u8 = 4;
enum S {
    X,
}
macro_rules! m {
    () => {
        1
    };
}
type T = u16;
