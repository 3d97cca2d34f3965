impl A {
    fn f(&self) {}
}

impl<T> B<T> {
    fn f(&self) {
        go()
    }
}
