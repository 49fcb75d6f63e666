//go:build unix

package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/manifest/store/fsck"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/opencontainers/go-digest"
)

// specials are what may be in the place of a file.
var specials = map[string]func(path string) error{
	"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o644) },
	"socket": func(path string) error { return socket(path) },
	"folder": func(path string) error { return os.Mkdir(path, 0o755) },
	"link to a pipe": func(path string) error {
		return errors.Join(syscall.Mkfifo(path+".pipe", 0o644), os.Symlink(path+".pipe", path))
	},
	"link to a device": func(path string) error { return os.Symlink("/dev/zero", path) },
}

func socket(path string) error {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	dir, err := os.Getwd()
	if err == nil {
		err = os.Chdir(filepath.Dir(path)) // the name of a socket is short
	}
	if err != nil {
		return err
	}
	return errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: filepath.Base(path)}), os.Chdir(dir))
}

// Whatever is in the place of a file of the store, an operation ends, and with an error that names the file.
func TestSpecialFiles(t *testing.T) {
	const text = "weights"
	d := digest.FromString(text)
	blob, part := filepath.Join(store.BlobsDir, d.Encoded()), filepath.Join(store.IngestDir, d.Encoded())
	partial := func(ctx context.Context, s *store.Store) error {
		if err := os.Remove(s.BlobPath(d)); err != nil {
			return err
		}
		p, err := ingest.OpenPartial(ctx, s, d, int64(len(text)), nil)
		if err == nil {
			defer p.Close()
			_, err = p.WriteAt([]byte("w"), 3)
		}
		return err
	}
	for name, c := range map[string]struct {
		path string
		do   func(ctx context.Context, s *store.Store) error
		want error // nil: it may also succeed
	}{
		"read a blob": {blob, func(_ context.Context, s *store.Store) error {
			_, err := s.ReadBlob(d, 100)
			return err
		}, manifest.ErrCorrupt},
		"verify a blob": {blob, func(ctx context.Context, s *store.Store) error {
			return s.VerifyBlobs(ctx, described(text))
		}, manifest.ErrCorrupt},
		"copy": {blob, func(ctx context.Context, s *store.Store) error {
			_, err := s.Copy(ctx, storetest.MustName(t, "a"), storetest.MustName(t, "b"), "")
			return err
		}, manifest.ErrCorrupt},
		"list": {"index.json", func(ctx context.Context, s *store.Store) error {
			_, err := s.List(ctx)
			return err
		}, manifest.ErrIndex},
		"open": {"oci-layout", func(_ context.Context, s *store.Store) error {
			_, err := store.Open(s.Root())
			return err
		}, place.ErrNotRegular},
		"lock": {"lock", func(ctx context.Context, s *store.Store) error {
			_, err := s.Lock(ctx)
			return err
		}, place.ErrNotRegular},
		"prune": {"lock", func(ctx context.Context, s *store.Store) error {
			_, err := collect.Prune(ctx, s, collect.PruneOptions{})
			return err
		}, place.ErrNotRegular},
		"lock the index": {"index.lock", func(ctx context.Context, s *store.Store) error {
			return s.Tag(ctx, storetest.MustName(t, "a"), storetest.MustName(t, "b"))
		}, place.ErrNotRegular},
		"secret": {store.SecretFile, func(ctx context.Context, s *store.Store) error {
			_, err := s.Secret(ctx)
			return err
		}, nil},
		"notes": {store.VerifiedFile, func(ctx context.Context, s *store.Store) error {
			_, _, err := s.PutBytes(ctx, []byte("new"))
			return errors.Join(err, s.VerifyBlobs(ctx, described(text)))
		}, nil},
		"part":        {part + ".part", partial, place.ErrNotRegular},
		"ranges":      {part + ".ranges", partial, place.ErrNotRegular},
		"new ranges":  {part + ".ranges.new", partial, nil},
		"part's lock": {part + ".lock", partial, place.ErrNotRegular},
		"holder": {"holders/1-x", func(_ context.Context, s *store.Store) error {
			s.Locks().Holders()
			return nil
		}, nil},
		"fsck, a blob": {blob, check, nil},
		"fsck, parts":  {part + ".part", check, nil},
		"fsck, use":    {store.IngestDir + "/using-" + d.Encoded() + "-x", check, nil},
	} {
		for special, put := range specials {
			t.Run(name+", "+special, func(t *testing.T) {
				s := storetest.NewStore(t)
				storetest.PutModel(t, s, "a", text)
				path := s.Path(filepath.FromSlash(c.path))
				if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := put(path); err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				go func() { ended <- c.do(t.Context(), s) }()
				select {
				case err := <-ended:
					if c.want != nil && !errors.Is(err, c.want) {
						t.Errorf("the error is %v", err)
					}
					if err != nil && strings.Contains(err.Error(), "\n") {
						t.Errorf("the error has several lines: %v", err)
					}
				case <-time.After(30 * time.Second):
					t.Fatal("it waits")
				}
			})
		}
	}
}

func check(ctx context.Context, s *store.Store) error {
	_, err := fsck.Run(ctx, s, fsck.Options{})
	return err
}
