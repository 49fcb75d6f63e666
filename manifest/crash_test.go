package manifest

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

	"github.com/opencontainers/go-digest"
)

func init() {
	for job, step := range map[string]func(context.Context, *Store, int) error{
		"prune": pruneStep, "repair": repairStep, "tag": tagStep,
	} {
		ChildJobs[job] = func(ctx context.Context, s *Store, _ string) error {
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
func pruneStep(ctx context.Context, s *Store, i int) error {
	for v := range 3 {
		if err := createModel(ctx, s, fmt.Sprintf("m%d", i%2), "constant", fmt.Sprint("version", i, v)); err != nil {
			return err
		}
	}
	_, err := s.Prune(ctx, PruneOptions{})
	return err
}

// repairStep damages a model of its own and an unreferenced blob, and repairs the store.
func repairStep(ctx context.Context, s *Store, i int) error {
	if err := createModel(ctx, s, "damaged", fmt.Sprint("part ", i), "whole"); err != nil {
		return err
	}
	for _, text := range []string{fmt.Sprint("part ", i), fmt.Sprint("unused ", i)} {
		path := s.BlobPath(digest.FromString(text))
		os.Remove(path)
		if err := os.WriteFile(path, []byte("bad"), 0o644); err != nil {
			return err
		}
	}
	_, err := s.Fsck(ctx, FsckOptions{Repair: true})
	return err
}

// tagStep adds and removes names, including the only name of a model.
func tagStep(ctx context.Context, s *Store, i int) error {
	if err := createModel(ctx, s, "new", fmt.Sprint("version", i)); err != nil {
		return err
	}
	for _, names := range [][2]string{{"bystander", "t1"}, {"new", "t2"}, {"t2", "new"}, {"t1", "t3"}} {
		if err := s.Tag(ctx, Name{Path: names[0]}, Name{Path: names[1]}); err != nil {
			return err
		}
	}
	return s.Remove(ctx, Name{Path: fmt.Sprintf("t%d", 1+i%3)}, Name{Path: "new"})
}

// A process is killed repeatedly in the middle of each job. No named model is lost, and a later complete run leaves
// none of its files behind.
func TestKilledInTheMiddle(t *testing.T) {
	for _, job := range []string{"prune", "repair", "tag"} {
		t.Run(job, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "store")
			s, err := Open(root)
			if err != nil {
				t.Fatal(err)
			}
			if err := createModel(t.Context(), s, "bystander", "constant", "bystander"); err != nil {
				t.Fatal(err)
			}
			for range 8 {
				cmd := child(t, job, root)
				startReady(t, cmd)
				time.Sleep(rand.N(60 * time.Millisecond))
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				cmd.Wait()
				if msg := fmt.Sprint(cmd.Stderr); msg != "" {
					t.Fatalf("the child failed by itself: %s", msg)
				}
				for _, p := range fsck(t, s, FsckOptions{}).Problems {
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
			if err := s.Remove(t.Context(), Name{Path: "damaged"}); err != nil && !errors.Is(err, ErrNotFound) {
				t.Fatal(err)
			}
			fsck(t, s, FsckOptions{Repair: true})
			prune(t, s, PruneOptions{})
			wantProblems(t, fsck(t, s, FsckOptions{}))
			left := slices.DeleteFunc(files(t, s, ingestDir),
				func(name string) bool { return strings.HasPrefix(name, "index.json-") })
			if left = slices.Concat(left, files(t, s, HoldersDir)); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			for _, name := range files(t, s, quarantineDir) {
				if b, err := os.ReadFile(s.path(quarantineDir, name)); !strings.HasPrefix("bad", string(b)) {
					t.Errorf("quarantined %s: %q, %v", name, b, err)
				}
			}
		})
	}
}
