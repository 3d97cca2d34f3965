struct A;

impl A {}
