package ranks

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/cache/prefix"
	"github.com/ingotml/ingot/convert/converttest"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/processor"
	"github.com/ingotml/ingot/runtime/runtimetest"
)

// Commands that do not fit a follower's state end it with an error, and it frees everything.
func TestCommandsThatDoNotFit(t *testing.T) {
	runtimetest.NoArrays(t)
	store, entry := converttest.Pack(t, "llama-default")
	f := processor.Files{Store: store, Image: entry.Image}
	one := func(p part) *forward { return &forward{Parts: []part{p}} }
	for want, commands := range map[string][]command{
		"of nothing":                       {&forward{}},
		"with wrong tokens":                {one(part{Seq: 1})},
		"5 with wrong tokens":              {one(part{Seq: 5, Tokens: []int32{1 << 30}})},
		"6 with wrong tokens":              {one(part{Seq: 6, Tokens: []int32{-1}})},
		"is at position 0, on rank 0 at 3": {one(part{Seq: 1, At: 3, Tokens: []int32{5}})},
		"is at position 2, on rank 0 at 0": {one(part{Seq: 1, Tokens: []int32{5, 6}}), one(part{Seq: 1, Tokens: []int32{5}})},
		"2 positions for 1 tokens":         {one(part{Seq: 1, Tokens: []int32{5}, Grid: [3][]int32{{1, 2}}})},
		"a picture of 3 rows":              {one(part{Seq: 1, Tokens: []int32{5}, Vectors: []vectors{{Rows: 3, Width: 1}}})},
		"logits of row 1 of 1":             {&forward{Parts: []part{{Seq: 1, Tokens: []int32{5, 6}}}, Head: []int{1}}},
		"without a forward pass":           {&head{[]int{0}}},
		"logits of row 3 of 2":             {one(part{Seq: 1, Tokens: []int32{5, 6}, All: true}), &head{[]int{3}}},
		"there is no session 4":            {&sessionStore{4, []prefix.Key{1}}},
		"session 4 has begun already": {&sessionBegin{4, 1, "", []prefix.Key{1}, 1},
			&sessionBegin{4, 1, "", []prefix.Key{1}, 1}},
		"no node 9 to evict":     {&evict{9}},
		"do not exist":           {&keepHidden{1, 0, 1, 1, true}},
		"has no draft":           {&propose{[]text{{1, 1, nil}}, []int{1}}},
		"there is no command 77": {nil},
	} {
		a, b := net.Pipe()
		leader, said := newLink(a, time.Hour, time.Minute), make(chan string, 1)
		go func() {
			_ = leader.writeJSON(frameStart, Start{Program: "1", Engine: mlxtest.Open(t).Info().Version, Rank: 1, Size: 2})
			kind, content, _ := leader.read()
			if kind == frameReady {
				var all []byte
				for _, c := range commands {
					if c == nil {
						all = append(all, 77)
					} else {
						all = encode(all, c)
					}
				}
				_ = leader.write(frameCommands, all)
				_, content, _ = leader.read()
			}
			said <- string(content)
		}()
		err := follow(t.Context(), b, "1", func(ctx context.Context, _ Start) (*load.Model, error) {
			return load.Open(ctx, mlxtest.Open(t), f, f.Processor, runtime.Options{})
		}, time.Hour, time.Minute)
		if !errors.Is(err, runtime.ErrRanks) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if got := <-said; !strings.Contains(got, want) {
			t.Errorf("the leader hears %q, want %q", got, want)
		}
		leader.close()
	}
}

// A checksum depends on each bit and on the order.
func TestBits(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		var seen []uint64
		for _, of := range [][]float32{{}, {0}, {0, 0}, {1, 2}, {2, 1}, {1, 2.0000002}} {
			sum := uint64(0)
			if len(of) > 0 {
				sum = bits(mlx.FromSlice(e, of))
			}
			if slices.Contains(seen, sum) {
				t.Errorf("%v has the checksum of another array", of)
			}
			seen = append(seen, sum)
		}
		if bits(nil) != 0 {
			t.Error("no array has a checksum")
		}
	})
}
