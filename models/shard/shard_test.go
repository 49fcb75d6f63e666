package shard

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/table"
	_ "github.com/ingotml/ingot/arch/types"
)

// The parts of all ranks are the whole tensor, as often as there are copies.
func TestPartition(t *testing.T) {
	files, err := filepath.Glob("../../testdata/models/*/config.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no checkpoints", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := arch.Detect(b)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{1, 2, 3, 4, 8} {
			checkPartition(t, m.Table(), size)
		}
	}
}

func checkPartition(t *testing.T, table table.Table, size int) {
	t.Helper()
	count := map[string][]int{} // ranks that have each index
	copies := map[string]int{}
	for rank := range size {
		parts, err := Parts(table, rank, size)
		if err != nil {
			if !errors.Is(err, ErrRanks) {
				t.Error(err)
			}
			return
		}
		for name, p := range parts {
			if p.Absent {
				if rank == 0 {
					t.Errorf("%s: rank 0 of %d does not have it", name, size)
				}
				continue
			}
			if count[name] == nil {
				count[name], copies[name] = make([]int, p.Of), p.Copies
			}
			if p.Len() == 0 || p.Len() == p.Of && p.Copies == 1 {
				t.Errorf("%s: rank %d of %d has %d of %d", name, rank, size, p.Len(), p.Of)
			}
			for _, r := range p.Ranges {
				for i := r.Begin; i < r.End; i++ {
					count[name][i]++
				}
			}
		}
	}
	if size == 1 && len(count) > 0 {
		t.Error("one rank has parts")
	}
	for name, ranks := range count {
		for i, n := range ranks {
			if n != copies[name] {
				t.Errorf("%s: %s: %d of %d ranks have index %d, want %d", table.ModelType, name, n, size, i, copies[name])
				break
			}
		}
	}
}

func TestParts(t *testing.T) {
	queries := table.Split{Kind: table.HeadGroup, Parts: 2, Within: 3}
	keys := queries
	keys.Shared = true
	fused := table.Split{Kind: table.HeadGroup, Parts: 2, Sections: []int64{8, 8, 4}}
	for _, c := range []struct {
		name       string
		split      table.Split
		shape      []int64
		rank, size int
		want       []Range
		copies     int
	}{
		{"rows", table.Split{Kind: table.Column}, []int64{256, 8}, 1, 2, []Range{{128, 256}}, 1},
		{"at groups", table.Split{Kind: table.Column}, []int64{1408, 8}, 1, 4, []Range{{352, 704}}, 1},
		{"at large groups", table.Split{Kind: table.Row, Axis: 1}, []int64{8, 11008}, 0, 3, []Range{{0, 3648}}, 1},
		{"fewer than ranks", table.Split{Kind: table.Column}, []int64{3, 8}, 1, 4, nil, 0},
		{"experts", table.Split{Kind: table.ByExpert}, []int64{5, 8, 8}, 0, 2, []Range{{0, 2}}, 1},
		{"query heads", queries, []int64{48, 8}, 1, 2, []Range{{24, 48}}, 1},
		{"query heads of a shared KV head", queries, []int64{48, 8}, 1, 4, []Range{{8, 24}}, 1},
		{"a shared KV head", keys, []int64{16, 8}, 2, 4, []Range{{8, 16}}, 2},
		{"more ranks than query heads", queries, []int64{48, 8}, 1, 8, nil, 0},
		{"ranks that KV heads do not divide", queries, []int64{48, 8}, 1, 3, nil, 0},
		{"fused", fused, []int64{20, 8}, 1, 2, []Range{{4, 8}, {12, 16}, {18, 20}}, 1},
	} {
		p, divides := partOf(table.Spec{Name: c.name, Shape: c.shape, Split: c.split}, c.rank, c.size)
		if divides != (c.want != nil) || divides && (!reflect.DeepEqual(p.Ranges, c.want) || p.Copies != c.copies) {
			t.Errorf("%s: %+v, %v", c.name, p, divides)
		}
	}
	tower := table.Spec{Name: "a vision tower", Shape: []int64{4, 4}, Split: table.Split{Kind: table.RankZero}}
	if p, divides := partOf(tower, 0, 2); divides {
		t.Errorf("rank 0 has %+v of %s", p, tower.Name)
	}
	if p, divides := partOf(tower, 1, 2); !divides || !p.Absent {
		t.Errorf("rank 1 has %+v of %s", p, tower.Name)
	}
	for _, rank := range []int{-1, 2} {
		if _, err := Parts(table.Table{}, rank, 2); !errors.Is(err, ErrRanks) {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

func TestBytes(t *testing.T) {
	columns := Part{Axis: 1, Of: 128, Ranges: []Range{{48, 80}}, Copies: 1}
	covered := columns.Cover(32)
	if want := (Part{Axis: 1, Of: 128, Ranges: []Range{{32, 96}}, Copies: 1, Before: 16, After: 16}); !reflect.DeepEqual(
		covered, want) {
		t.Errorf("covered: %+v", covered)
	}
	if covered.Own() != 32 || covered.Len() != 64 {
		t.Errorf("%d of %d are its own", covered.Own(), covered.Len())
	}
	for _, c := range []struct {
		name  string
		part  Part
		whole []int64
		size  int64
		want  []Range
		shape []int64
	}{
		{"columns", columns, []int64{2, 128}, 2, []Range{{96, 160}, {352, 416}}, []int64{2, 32}},
		{"codes", covered, []int64{2, 16}, 4, []Range{{16, 48}, {80, 112}}, []int64{2, 8}},
		{"scales", covered, []int64{2, 4}, 2, []Range{{2, 6}, {10, 14}}, []int64{2, 2}},
		{"rows", Part{Of: 4, Ranges: []Range{{1, 3}}}, []int64{4, 8}, 4, []Range{{32, 96}}, []int64{2, 8}},
		{"all columns", Part{Axis: 1, Of: 4, Ranges: []Range{{0, 4}}}, []int64{3, 4}, 1, []Range{{0, 12}}, []int64{3, 4}},
		{
			"sections", Part{Of: 8, Ranges: []Range{{1, 2}, {4, 6}}}, []int64{8, 2}, 2, []Range{{4, 8}, {16, 24}},
			[]int64{3, 2},
		},
	} {
		got, err := c.part.Bytes(c.whole, c.size)
		shape, failed := c.part.Shape(c.whole)
		if err != nil || failed != nil || !reflect.DeepEqual(got, c.want) || !reflect.DeepEqual(shape, c.shape) {
			t.Errorf("%s: %v %v, %v %v", c.name, got, shape, err, failed)
		}
	}
	for _, whole := range [][]int64{{2, 4}, {2}} { // groups are cut; there is no such axis
		if _, err := columns.Bytes(whole, 2); !errors.Is(err, ErrRanks) {
			t.Errorf("%v: %v", whole, err)
		}
	}
	fused := Part{Of: 20, Ranges: []Range{{4, 8}, {12, 16}, {18, 20}}}
	if got := fused.Within(Range{8, 20}); got != (Range{4, 10}) {
		t.Errorf("within the last sections: %v", got)
	}
}
