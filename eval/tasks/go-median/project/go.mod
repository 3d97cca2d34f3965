module example.invalid/median

go 1.19
