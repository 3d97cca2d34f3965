impl A {
    fn f(&self) {}
}

impl B {
    fn f(&self) {}
}
