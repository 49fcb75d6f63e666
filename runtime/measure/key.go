package measure

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
)

// scoresKey returns everything that the logits of a model depend on, beside the tokens: its files, the arithmetic, and
// the program with its kernels.
func scoresKey(ctx context.Context, thread *mlx.Thread, e *store.Entry, o runtime.Options) (string, error) {
	key := fmt.Sprintln("options", o.Float32, o.KV)
	for _, l := range e.Image.Layers {
		if l.Kind == manifest.KindTensor || l.Kind == manifest.KindFile {
			key += fmt.Sprintln(l.Kind, l.Name, l.Digest)
		}
	}
	info := thread.Info()
	key += fmt.Sprintln(info.Version, info.Flavour, info.GPU, info.Device["device_name"])
	if err := thread.Do(ctx, func() error {
		cpu := thread.CPU()
		key += fmt.Sprintln(cpu.Threads, cpu.Fast, cpu.ISA)
		return nil
	}); err != nil {
		return "", err
	}
	program, err := programDigest()
	return key + program, err
}

// programDigest returns the digest of this program's file, which determines the bridge that it compiles too.
var programDigest = sync.OnceValues(func() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
})
