package manifest

import (
	"errors"
	"slices"
	"testing"
	"time"
)

func TestTag(t *testing.T) {
	s := newStore(t)
	d := putModel(t, s, "a", "w")
	putModel(t, s, "h.io/b:2", "old")
	Clock(func() time.Time { return noon.Add(time.Hour) })(s)
	for _, dst := range []string{"h.io/b:2", "c"} { // an existing name and a new one
		if err := s.Tag(t.Context(), mustName(t, "a"), mustName(t, dst)); err != nil {
			t.Fatal(err)
		}
		e, err := s.Resolve(t.Context(), mustName(t, dst))
		if err != nil || e.Digest != d {
			t.Errorf("%s is %+v, %v, want %s", dst, e, err, d)
		}
	}
	if err := s.Tag(t.Context(), mustName(t, "a@"+string(d)), mustName(t, "d")); err != nil {
		t.Error(err)
	}
	list, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := names(t, s), []string{"a:latest", "c:latest", "d:latest", "h.io/b:2"}; !slices.Equal(got, want) {
		t.Errorf("names %v, want %v", got, want)
	}
	if !list[0].Modified.Equal(noon) || !list[1].Modified.Equal(noon.Add(time.Hour)) || list[1].Size != list[0].Size ||
		list[1].ModelType != "llama" {
		t.Errorf("entries %+v", list)
	}
	for _, name := range []string{"a", "d", "h.io/b:2"} {
		remove(t, s, name)
	}
	prune(t, s, PruneOptions{})
	wantBlobs(t, s, map[string]bool{"w": true, "old": false})
	checkStore(t, s)
	remove(t, s, "c")
	if got := files(t, s, "blobs/sha256"); len(got) > 0 {
		t.Errorf("blobs left: %v", got)
	}
}

func TestTagErrors(t *testing.T) {
	s := newStore(t)
	d := putModel(t, s, "a", "w")
	if err := s.Tag(t.Context(), mustName(t, "b"), mustName(t, "c")); !errors.Is(err, ErrNotFound) {
		t.Errorf("an unknown name: %v", err)
	}
	for _, dst := range []Name{mustName(t, "c@"+string(d)), {Path: "../c"}} {
		if err := s.Tag(t.Context(), mustName(t, "a"), dst); !errors.Is(err, ErrInvalidName) {
			t.Errorf("as %s: %v", dst, err)
		}
	}
	if got := names(t, s); !slices.Equal(got, []string{"a:latest"}) {
		t.Errorf("names %v", got)
	}
}
