package recursion

import (
	"slices"
	"testing"
)

func TestOrder(t *testing.T) {
	graph := [][]int32{0: {}, 1: {2, 3}, 2: {0}, 3: {1, 2}, 4: {0}, 5: {4, 5}} // 1 and 3 are a cycle; 4 and 5 stand apart
	next := func(i int32, k int) (int32, bool) {
		if k < len(graph[i]) {
			return graph[i][k], true
		}
		return 0, false
	}
	for _, c := range []struct{ roots, want []int32 }{
		{[]int32{1}, []int32{0, 2, 3, 1}},
		{[]int32{1, 5, 2}, []int32{0, 2, 3, 1, 4, 5}},
		{nil, nil},
	} {
		if got := Order(len(graph), next, c.roots...); !slices.Equal(got, c.want) {
			t.Errorf("from %v: %v, want %v", c.roots, got, c.want)
		}
	}
}
