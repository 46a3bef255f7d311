module bellbird

go 1.26
