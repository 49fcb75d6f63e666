package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/manifest/store/fsck"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/ingotml/ingot/registry"
	"github.com/opencontainers/go-digest"
)

// worker is the state of a process of TestSoak.
type worker struct {
	s      *store.Store
	client *registry.Client
	addr   string
}

// soakOps are the operations that a process chooses from, with their relative frequency. An operation returns false if
// it had nothing to do or the store was busy.
var soakOps = []struct {
	name   string
	weight int
	do     func(*worker, context.Context) (bool, error)
}{
	{"create", 6, (*worker).create},
	{"resume", 2, (*worker).resume},
	{"pull", 5, (*worker).pull},
	{"push", 2, (*worker).push},
	{"tag", 5, (*worker).tag},
	{"copy", 3, (*worker).copy},
	{"read", 8, (*worker).read},
	{"use", 6, (*worker).use},
	{"remove", 6, (*worker).remove},
	{"prune", 3, (*worker).prune},
	{"fsck", 1, (*worker).fsck},
	{"list", 2, (*worker).list},
}

// soakName returns one of a few names, so that the processes compete for them.
func soakName() manifest.Name {
	hosts := []string{"", "", "registry.example.com"}
	return manifest.Name{Host: hosts[rand.N(len(hosts))], Path: fmt.Sprintf("team/m%d", rand.N(4)),
		Tag: fmt.Sprintf("t%d", rand.N(2))}
}

// soakText returns one of a few contents, so that models share blobs.
func soakText() string {
	n := rand.N(40)
	return strings.Repeat(fmt.Sprintf("contents %d\n", n), 1+n*n)
}

func (w *worker) create(ctx context.Context) (bool, error) {
	release, err := w.s.Lock(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	var img manifest.Image
	for i := range 1 + rand.N(6) {
		b, err := w.s.NewBlob(ctx)
		if err != nil {
			return false, err
		}
		defer b.Abort()
		if _, err := io.WriteString(b, soakText()); err != nil {
			return false, err
		}
		d, n, err := b.Commit()
		if err != nil {
			return false, err
		}
		img.Layers = append(img.Layers, soakLayer(i, d, n))
	}
	_, err = w.s.Put(ctx, soakName(), img)
	return true, err
}

func soakLayer(i int, d digest.Digest, n int64) manifest.Layer {
	return manifest.Layer{Kind: manifest.KindTensor, Name: fmt.Sprint("t", i), Digest: d, Size: n}
}

// resume creates a model with an Ingest, as commands do. A random quarter of the runs end before Put, and a later run
// with the same key resumes them.
func (w *worker) resume(ctx context.Context) (bool, error) {
	release, err := w.s.Lock(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	in, err := ingest.Open(ctx, w.s, digest.FromString(fmt.Sprint("run", rand.N(3))))
	if err != nil {
		return false, err
	}
	defer in.Close()
	var img manifest.Image
	for i := range 4 {
		name := fmt.Sprint(i)
		d, n, ok := in.Lookup(name)
		if !ok {
			b, err := in.NewBlob(name)
			if err != nil {
				return false, err
			}
			defer b.Abort()
			if _, err := io.WriteString(b, soakText()); err != nil {
				return false, err
			}
			if d, n, err = b.Seal(ctx); err != nil {
				return false, err
			}
		}
		img.Layers = append(img.Layers, soakLayer(i, d, n))
	}
	if err := in.Publish(); err != nil {
		return false, err
	}
	if rand.N(4) == 0 {
		return false, nil
	}
	if _, err := w.s.Put(ctx, soakName(), img); err != nil {
		return false, err
	}
	in.Remove()
	return true, nil
}

func (w *worker) tag(ctx context.Context) (bool, error) {
	return absentIsFine(w.s.Tag(ctx, w.name(), soakName()))
}

func (w *worker) copy(ctx context.Context) (bool, error) {
	formats := []string{"", "", manifest.FormatModelPack, manifest.FormatOllama}
	_, err := w.s.Copy(ctx, w.name(), soakName(), formats[rand.N(len(formats))])
	if errors.Is(err, manifest.ErrInvalidImage) || errors.Is(err, manifest.ErrBlobMissing) {
		return false, nil // a partial model
	}
	return absentIsFine(err)
}

// name returns the name of a model that may exist, local or from the registry.
func (w *worker) name() manifest.Name {
	if rand.N(3) == 0 {
		return remoteName(w.addr, rand.N(soakRemotes))
	}
	return soakName()
}

// pull pulls a model, or a part of it.
func (w *worker) pull(ctx context.Context) (bool, error) {
	var o registry.PullOptions
	if rand.N(4) == 0 {
		o.Only = []string{"t[12]"}
	}
	_, err := w.client.Pull(ctx, w.s, remoteName(w.addr, rand.N(soakRemotes)), o)
	return err == nil, err
}

func (w *worker) push(ctx context.Context) (bool, error) {
	to := manifest.Name{Host: w.addr, Path: fmt.Sprint("new/m", rand.N(3)), Tag: "t"}
	_, err := w.client.Push(ctx, w.s, w.name(), to, registry.PushOptions{})
	if errors.Is(err, manifest.ErrBlobMissing) {
		return false, nil // a partial model
	}
	return absentIsFine(err)
}

// read reads a model without a lock, as the runtime does. If that fails, the model must have been removed or replaced
// in the meantime.
func (w *worker) read(ctx context.Context) (bool, error) {
	name := w.name()
	for range 20 {
		before, err := w.s.ResolveRaw(ctx, name)
		if err != nil {
			return absentIsFine(err)
		}
		err = readAll(ctx, w.s, name)
		if err == nil {
			return true, nil
		}
		if after, again := w.s.ResolveRaw(ctx, name); again == nil && after.Descriptor.Digest == before.Descriptor.Digest &&
			after.Descriptor.Annotations["org.ingotml.modified"] == before.Descriptor.Annotations["org.ingotml.modified"] {
			return false, err
		}
	}
	return false, nil
}

func readAll(ctx context.Context, s *store.Store, name manifest.Name) error {
	raw, err := s.ResolveRaw(ctx, name)
	if err != nil {
		return err
	}
	e, err := s.Entry(raw)
	if err != nil {
		return err
	}
	for _, l := range e.Image.Layers {
		if _, err := s.ReadBlob(l.Digest, l.Size); err != nil && !(raw.Partial() && errors.Is(err, manifest.ErrBlobMissing)) {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (w *worker) remove(ctx context.Context) (bool, error) {
	err := collect.Remove(ctx, w.s, w.name())
	if errors.Is(err, manifest.ErrBlobsKept) && errors.Is(err, manifest.ErrBusy) {
		return false, nil
	}
	return absentIsFine(err)
}

func (w *worker) prune(ctx context.Context) (bool, error) {
	_, err := collect.Prune(ctx, w.s, collect.PruneOptions{DryRun: rand.N(4) == 0, Unfinished: rand.N(4) == 0})
	if errors.Is(err, manifest.ErrBusy) {
		return false, nil
	}
	return err == nil, err
}

// fsck must find no problems while other processes work.
func (w *worker) fsck(ctx context.Context) (bool, error) {
	r, err := fsck.Run(ctx, w.s, fsck.Options{Repair: rand.N(2) == 0})
	if errors.Is(err, manifest.ErrBusy) {
		return false, nil
	}
	if err == nil && len(r.Problems) > 0 {
		err = fmt.Errorf("problems: %+v", r.Problems)
	}
	return err == nil, err
}

// use checks that the image that a name stood for stays complete, while others move the name and collect.
func (w *worker) use(ctx context.Context) (bool, error) {
	hold := func(ctx context.Context, d digest.Digest) (func(), error) { return ingest.Use(ctx, w.s, d) }
	n, d, release, err := ingest.Resolve(ctx, w.s, w.name(), hold)
	if err != nil {
		return absentIsFine(err)
	}
	defer release()
	e, err := w.s.ReadEntry(n, d)
	if err != nil {
		return false, fmt.Errorf("%s is used: %w", n, err)
	}
	if w.s.CheckPresent(e, true) != nil {
		return false, nil // a partial model
	}
	for range 20 {
		if err := w.s.CheckPresent(e, true); err != nil {
			return false, fmt.Errorf("%s is used: %w", n, err)
		}
		time.Sleep(time.Millisecond)
	}
	return true, nil
}

func (w *worker) list(ctx context.Context) (bool, error) {
	if _, err := storetest.ListShared(ctx, w.s); err != nil {
		return false, err
	}
	_, err := collect.UsageOf(ctx, w.s)
	return err == nil, err
}

func absentIsFine(err error) (bool, error) {
	if errors.Is(err, manifest.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
