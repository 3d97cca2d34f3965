module example.invalid/wordwrap

go 1.19
