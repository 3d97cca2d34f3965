module example.invalid/bytesize

go 1.19
