fn a() {
	1
}

fn b() {
	3
}

fn c() {
	4
}