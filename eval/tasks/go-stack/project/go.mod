module example.invalid/stack

go 1.19
