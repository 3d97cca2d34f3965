// Package wordwrap breaks texts into lines.
package wordwrap

import "strings"

// Wrap returns the words of a text in lines of at most width letters; a longer word has a line of its own.
func Wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = word
		} else if line == "" {
			line = word
		} else {
			line += " " + word
		}
	}
	return append(lines, line)
}
