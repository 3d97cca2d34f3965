const A: u8 = 1;
const B: u8 = 2;
struct S;
macro_rules! m {
    () => {};
}
type T = u8;
