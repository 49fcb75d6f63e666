package precision

import (
	"testing"
)

func TestUseMoreBits(t *testing.T) {
	var got []int
	for i := range 24 {
		if moreBits(i, 24) {
			got = append(got, i)
		}
	}
	// An eighth is 3 layers: the first 3, the last 3, and every third one in between.
	want := []int{0, 1, 2, 5, 8, 11, 14, 17, 20, 21, 22, 23}
	if len(got) != len(want) {
		t.Fatalf("layers %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("layers %v, want %v", got, want)
		}
	}
	if moreBits(-1, 24) || moreBits(layerOf("model.norm.weight"), 24) {
		t.Error("a tensor without a layer counts as one of them")
	}
}
