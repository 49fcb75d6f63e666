package fsck_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/manifest/store/fsck"
	"github.com/ingotml/ingot/manifest/store/lock"
	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/opencontainers/go-digest"
)

func init() {
	for job, step := range map[string]func(context.Context, *store.Store, int) error{
		"prune": pruneStep, "repair": repairStep, "tag": tagStep,
	} {
		storetest.Jobs[job] = func(ctx context.Context, s *store.Store, _ string) error {
			fmt.Println("ready")
			for i := 0; ; i++ { // until killed
				if err := step(ctx, s, i); err != nil {
					return err
				}
			}
		}
	}
}

// pruneStep creates garbage and removes it.
func pruneStep(ctx context.Context, s *store.Store, i int) error {
	for v := range 3 {
		if err := storetest.CreateModel(ctx, s, fmt.Sprintf("m%d", i%2), "constant",
			fmt.Sprint("version", i, v)); err != nil {
			return err
		}
	}
	_, err := collect.Prune(ctx, s, collect.PruneOptions{})
	return err
}

// repairStep damages a model of its own and an unreferenced blob, and repairs the store.
func repairStep(ctx context.Context, s *store.Store, i int) error {
	if err := storetest.CreateModel(ctx, s, "damaged", fmt.Sprint("part ", i), "whole"); err != nil {
		return err
	}
	for _, text := range []string{fmt.Sprint("part ", i), fmt.Sprint("unused ", i)} {
		path := s.BlobPath(digest.FromString(text))
		os.Remove(path)
		if err := os.WriteFile(path, []byte("bad"), 0o644); err != nil {
			return err
		}
	}
	_, err := fsck.Run(ctx, s, fsck.Options{Repair: true})
	return err
}

// tagStep adds and removes names, including the only name of a model.
func tagStep(ctx context.Context, s *store.Store, i int) error {
	if err := storetest.CreateModel(ctx, s, "new", fmt.Sprint("version", i)); err != nil {
		return err
	}
	for _, names := range [][2]string{{"bystander", "t1"}, {"new", "t2"}, {"t2", "new"}, {"t1", "t3"}} {
		if err := s.Tag(ctx, manifest.Name{Path: names[0]}, manifest.Name{Path: names[1]}); err != nil {
			return err
		}
	}
	return collect.Remove(ctx, s, manifest.Name{Path: fmt.Sprintf("t%d", 1+i%3)}, manifest.Name{Path: "new"})
}

// A process is killed repeatedly in the middle of each job. No named model is lost, and a later complete run leaves
// none of its files behind.
func TestKilledInTheMiddle(t *testing.T) {
	for _, job := range []string{"prune", "repair", "tag"} {
		t.Run(job, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "store")
			s, err := store.Open(root)
			if err != nil {
				t.Fatal(err)
			}
			if err := storetest.CreateModel(t.Context(), s, "bystander", "constant", "bystander"); err != nil {
				t.Fatal(err)
			}
			for range runtest.Pick(8, 80) {
				cmd := storetest.Child(t, job, root)
				storetest.StartReady(t, cmd)
				time.Sleep(rand.N(60 * time.Millisecond))
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				cmd.Wait()
				if msg := fmt.Sprint(cmd.Stderr); msg != "" {
					t.Fatalf("the child failed by itself: %s", msg)
				}
				for _, p := range storetest.Fsck(t, s, fsck.Options{}).Problems {
					if job != "repair" || slices.ContainsFunc(p.Models, func(m string) bool { return m != "damaged:latest" }) {
						t.Errorf("%+v", p)
					}
				}
				for _, text := range []string{"constant", "bystander"} {
					if _, err := s.ReadBlob(digest.FromString(text), 100); err != nil {
						t.Error(err)
					}
				}
			}
			if err := collect.Remove(t.Context(), s, manifest.Name{Path: "damaged"}); err != nil &&
				!errors.Is(err, manifest.ErrNotFound) {
				t.Fatal(err)
			}
			storetest.Fsck(t, s, fsck.Options{Repair: true})
			storetest.Prune(t, s, collect.PruneOptions{})
			storetest.WantProblems(t, storetest.Fsck(t, s, fsck.Options{}))
			left := slices.DeleteFunc(storetest.Files(t, s, store.IngestDir),
				func(name string) bool { return strings.HasPrefix(name, "index.json-") })
			if left = slices.Concat(left, storetest.Files(t, s, lock.HoldersDir)); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			for _, name := range storetest.Files(t, s, store.QuarantineDir) {
				if b, err := os.ReadFile(s.Path(store.QuarantineDir, name)); !strings.HasPrefix("bad", string(b)) {
					t.Errorf("quarantined %s: %q, %v", name, b, err)
				}
			}
		})
	}
}
