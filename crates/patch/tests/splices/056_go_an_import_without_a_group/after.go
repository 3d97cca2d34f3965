package a

import "fmt"

func A() {
	fmt.Println()
}
