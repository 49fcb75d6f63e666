package scores

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits"
)

// records are logits of each encoding.
var records = [][]float32{
	{1, -2.5, 0, float32(math.Copysign(0, -1)), float32(math.Inf(-1)), math.MaxFloat32 / 2}, // 16 bits each, or not
	{1.0009765625, -0.33325195, 65504, 6.103515625e-05, 0, float32(math.Copysign(0, -1))},   // float16
	{0.1, 1e-30, -3.4028235e38, 65504, 6e-08, 1.0009765625},                                 // float32
	{float32(math.Inf(1)), 1, 2, 3, 4, 5},
}

func keep(c Cache, key string, records ...[]float32) {
	w := c.Create(key)
	for _, r := range records {
		w.Add(r)
	}
	w.Keep()
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// Logits come back bit for bit, in the order in which they were added.
func TestExact(t *testing.T) {
	c := Cache{Dir: filepath.Join(t.TempDir(), "scores")}
	if c.Open("key") != nil {
		t.Error("an absent key is there")
	}
	keep(c, "key", records...)
	if c.Open("another") != nil {
		t.Error("another key is there")
	}
	r := c.Open("key")
	if r == nil {
		t.Fatal("the key is absent")
	}
	defer r.Close()
	for i, want := range records {
		got, err := r.Next(len(want))
		if err != nil || !slices.EqualFunc(got, want, func(a, b float32) bool {
			return math.Float32bits(a) == math.Float32bits(b)
		}) {
			t.Errorf("%d: %v, %v, want %v", i, got, err, want)
		}
	}
	if _, err := r.Next(6); err == nil {
		t.Error("there is one record too many")
	}
	for i, want := range []uint32{float32s, float16s, float32s, bfloat16s} {
		if kind, _ := encode(records[i]); kind != want {
			t.Errorf("%d: encoding %d, want %d", i, kind, want)
		}
	}
	for h := range 1 << 16 { // all of float16
		if v := fromFloat16(uint16(h)); h>>10&0x1f != 0 && h>>10&0x1f != 0x1f {
			if back, ok := toFloat16(v); !ok || int(back) != h {
				t.Fatalf("%#x: %v, %#x", h, v, back)
			}
		}
	}
}

// Damage is found wherever it is.
func TestDamaged(t *testing.T) {
	c := Cache{Dir: t.TempDir()}
	keep(c, "key", records...)
	whole, err := os.ReadFile(c.path("key"))
	if err != nil {
		t.Fatal(err)
	}
	read := func(b []byte) error {
		if err := os.WriteFile(c.path("key"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		r := c.Open("key")
		if r == nil {
			return errDamaged
		}
		defer r.Close()
		for _, want := range records {
			if _, err := r.Next(len(want)); err != nil {
				return err
			}
		}
		return nil
	}
	if err := read(whole); err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		if read(whole[:i]) == nil {
			t.Errorf("a file of %d bytes is read", i)
		}
		b := slices.Clone(whole)
		b[i] ^= 0x10
		if read(b) == nil {
			t.Errorf("damage of byte %d is not found", i)
		}
	}
}

// The least recently used files are removed, and scores that are too large are not kept.
func TestBounded(t *testing.T) {
	c := Cache{Dir: t.TempDir(), MaxBytes: 3 * 500}
	row := make([]float32, 100)
	for i := range row {
		row[i] = 0.1
	}
	for i, key := range []string{"a", "b", "c"} {
		keep(c, key, row)
		old := time.Now().Add(time.Duration(i-10) * time.Hour)
		if err := os.Chtimes(c.path(key), old, old); err != nil {
			t.Fatal(err)
		}
	}
	c.Open("a").Close() // uses it
	keep(c, "d", row)
	for key, want := range map[string]bool{"a": true, "b": false, "c": true, "d": true} {
		if _, err := os.Stat(c.path(key)); (err == nil) != want {
			t.Errorf("%s: %v", key, err)
		}
	}
	keep(c, "large", row, row, row, row)
	if c.Open("large") != nil || len(names(t, c.Dir)) != 3 {
		t.Errorf("scores that are too large are kept: %v", names(t, c.Dir))
	}
	if w := (Cache{Dir: c.Dir}).Create("x"); w.c.MaxBytes != limits.ScoreCache {
		t.Errorf("the limit is %d", w.c.MaxBytes)
	} else {
		w.Drop()
	}
}

// What cannot be written is not kept, and leaves nothing.
func TestNotKept(t *testing.T) {
	keep(Cache{}, "key", records...)
	if (Cache{}).Open("key") != nil {
		t.Error("the zero value keeps scores")
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	keep(Cache{Dir: file}, "key", records...) // not a folder
	c := Cache{Dir: t.TempDir()}
	w := c.Create("key")
	w.Add(records[0])
	w.Drop()
	if list := names(t, c.Dir); len(list) != 0 {
		t.Errorf("%v is left", list)
	}
	stale := filepath.Join(c.Dir, "1"+partSuffix)
	old := time.Now().Add(-2 * partLife)
	if err := os.WriteFile(stale, nil, 0o600); err != nil || os.Chtimes(stale, old, old) != nil {
		t.Fatal(err)
	}
	keep(c, "key", records...)
	if list := names(t, c.Dir); len(list) != 1 || !strings.HasSuffix(list[0], extension) {
		t.Errorf("%v is left", list)
	}
}
