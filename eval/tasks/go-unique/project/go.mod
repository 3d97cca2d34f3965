module example.invalid/unique

go 1.19
