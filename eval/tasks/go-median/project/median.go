// Package median finds the middle of numbers.
package median

import "sort"

// Median returns the median; of nothing it is 0.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sort.Float64s(values)
	return values[len(values)/2]
}
