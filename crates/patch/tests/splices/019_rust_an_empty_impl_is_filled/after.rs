struct A;

impl A {
    fn new() -> Self {
        A
    }
}
