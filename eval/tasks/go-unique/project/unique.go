// Package unique removes repeated values.
package unique

import "sort"

// Unique returns each value once.
func Unique(values []string) []string {
	sorted := append([]string(nil), values...)
	sort.Strings(sorted)
	var out []string
	for i, value := range sorted {
		if i == 0 || value != sorted[i-1] {
			out = append(out, value)
		}
	}
	return out
}
