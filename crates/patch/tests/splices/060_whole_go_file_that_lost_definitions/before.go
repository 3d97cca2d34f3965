// Package a is a package.
package a

import (
	"fmt"
	q "x/y"
)

// Limit is a limit.
const Limit = 1

const (
	// A is one.
	A = iota
	B
	C = 7 // seven
)

var x, y = 1, 2

// Shape is a shape.
type Shape struct {
	w int
}

type (
	Names []string
	Ages  map[string]int
)

// Area is wrong.
func (s *Shape) Area() int {
	return s.w + s.w
}

func (s Other) Area() int {
	return 0
}

func Double(x int) int {
	return x + 2
}
