// Package stack holds a stack of numbers.
package stack

// Stack is a stack of numbers; its zero value is empty.
type Stack struct {
	values []int
}

// Push adds a number.
func (s *Stack) Push(value int) {
	s.values = append(s.values, value)
}

// Pop takes the number that was added last.
func (s *Stack) Pop() (int, bool) {
	last := len(s.values) - 1
	value := s.values[last]
	s.values = s.values[:last]
	return value, true
}
