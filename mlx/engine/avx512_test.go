package engine

import (
	"runtime"
	"strings"
	"testing"
)

// A processor without AVX-512 gets an engine without kernels for it. Each kind of processor uses the other's engine if
// there is no better one.
func TestProcessors(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" {
		t.Skip("AVX-512 is amd64's")
	}
	w := newWorld(t)
	w.unpack()
	sources := fakeBridge()
	sources["math/avx512.cc"] = file("#ifdef INGOT_NO_AVX512\n#error \"not needed\"\n#endif\nint wide() { return 1; }\n")
	w.opts.inside.sources = sources
	processor := func(avx512 bool) {
		h := thisHost()
		h.avx512 = avx512
		w.opts.inside.host = &h
	}
	find := func() *Engine {
		t.Helper()
		e, err := Find(w.opts)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}

	processor(false)
	small := w.install()
	if small.LacksAVX512 {
		t.Error("the engine lacks AVX-512 on a processor without it")
	}

	processor(true)
	if e := find(); e.Key != small.Key || !e.LacksAVX512 {
		t.Errorf("on a processor with AVX-512: %+v, want the only engine, LacksAVX512", e)
	}
	if r := Status(t.Context(), w.opts); r.Hint == "" || len(r.Problems) > 0 ||
		!strings.Contains(r.String(), "ingot engine install") {
		t.Errorf("status of a small engine: %+v", r)
	}
	full := w.install()
	if e := find(); full.Key == small.Key || e.Key != full.Key || e.LacksAVX512 {
		t.Errorf("after an installation: %+v, want one with AVX-512", e)
	}
	if r := Status(t.Context(), w.opts); r.Hint != "" {
		t.Errorf("status with AVX-512: %+v", r)
	}

	processor(false)
	if e := find(); e.Key != small.Key {
		t.Errorf("on a processor without AVX-512: %+v, want its own", e)
	}
	compiled := w.logged("compiling")
	w.opts.Portable = true
	if e := w.install(); e.Key != full.Key || w.logged("compiling") != compiled {
		t.Errorf("portable engine: %+v, want that of processors with AVX-512", e)
	}
	w.opts.CacheDir = t.TempDir()
	w.unpack()
	w.install()
	w.opts.Portable = false
	if e := find(); e.Key != full.Key || e.LacksAVX512 {
		t.Errorf("with a portable engine only: %+v", e)
	}
	before := w.logged("compiling")
	if w.install(); w.logged("compiling") != before {
		t.Error("a portable engine does not suffice")
	}
}
