package registry

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/opencontainers/go-digest"
)

// stream uploads b in pieces, and checks that each file but the last is gone before the next one is asked for.
func stream(t *testing.T, u *Uploader, b []byte, piece int) (again bool, err error) {
	t.Helper()
	path, rest := filepath.Join(t.TempDir(), "piece"), b
	return u.Stream(t.Context(), int64(len(b)), "w", func(context.Context) (string, int64, digest.Digest, error) {
		_ = os.Remove(path)
		if len(rest) == 0 {
			return "", 0, digest.FromBytes(b), nil
		}
		p := rest[:min(piece, len(rest))]
		rest = rest[len(p):]
		return path, int64(len(p)), "", os.WriteFile(path, p, 0o644)
	})
}

// A blob that is sent in pieces arrives whole in spite of the faults that a push survives. Where the registry loses
// what it has, Stream says that the blob has to be made again; where it cannot take pieces, Streams says so.
func TestStreamFaults(t *testing.T) {
	b := rt.Noise(1, 3*64*kib+500)
	made := 0
	for _, f := range allFaults() {
		t.Run(f.name, func(t *testing.T) {
			p, c := rt.New(t), copyClient(t)
			f.set(t, p)
			if f.chunk == 0 {
				f.chunk = 64 * kib
			}
			u, err := c.Uploader(rt.NewStore(t), p.Name("team/m:v1"), PushOptions{ChunkSize: f.chunk, Stall: f.stall})
			if err != nil {
				t.Fatal(err)
			}
			again := true
			for try := 0; again && try < 3 && u.Streams(); try++ {
				again, err = stream(t, u, b, 40*kib)
			}
			got := p.Blob("team/m", digest.FromBytes(b))
			switch {
			case again && errors.Is(err, errPieceGone), !u.Streams() && err == nil && got == nil: // it has to be pushed
			case err == nil && !bytes.Equal(got, b):
				t.Errorf("the registry has %d bytes; requests:\n%s", len(got), strings.Join(p.Log(), "\n"))
			case err != nil && f.want == nil && f.text == "":
				t.Errorf("%v; requests:\n%s", err, strings.Join(p.Log(), "\n"))
			case err == nil:
				made++
			}
		})
	}
	if made < len(faults)*2/3 {
		t.Errorf("%d uploads ended well", made)
	}
}

// A registry that loses the session in the middle gets the blob from its beginning.
func TestStreamAgain(t *testing.T) {
	b := rt.Noise(2, 200*kib)
	p, c := rt.New(t), copyClient(t)
	p.Once("PATCH", rt.UploadRoute, func(x *rt.Exchange) { x.ForgetUploads(); x.Handle() }).After(2)
	u, err := c.Uploader(rt.NewStore(t), p.Name("team/m:v1"), PushOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := stream(t, u, b, 40*kib); !again || !errors.Is(err, errPieceGone) {
		t.Errorf("again: %v, %v", again, err)
	}
	if again, err := stream(t, u, b, 40*kib); again || err != nil {
		t.Errorf("again: %v, %v", again, err)
	}
	if got := p.Blob("team/m", digest.FromBytes(b)); !bytes.Equal(got, b) {
		t.Errorf("the registry has %d bytes", len(got))
	}
	p.On("PATCH", rt.UploadRoute, rt.Respond(http.StatusMethodNotAllowed))
	if again, err := stream(t, u, rt.Noise(3, 100*kib), 40*kib); !again || u.Streams() {
		t.Errorf("without chunks: again: %v, %v, streams: %v", again, err, u.Streams())
	}
}
