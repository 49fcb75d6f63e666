package export

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// outFile is a file being written, an *os.File.
type outFile interface {
	io.ReadWriteSeeker
	io.Closer
	Truncate(size int64) error
	Sync() error
}

func openFile(path string) (outFile, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
}

// resumed writes a file over what an earlier export has written of it. As long as that is equal, it is only read; the
// rest of the file is replaced from the first difference on. Nothing about the earlier bytes is trusted, so that
// neither another model's nor those that a crash has damaged get into the result.
type resumed struct {
	to       outFile
	at       int64 // bytes written or found equal
	replaced bool  // the earlier bytes end, or differ, at or before at
	earlier  []byte
}

func (r *resumed) Write(p []byte) (int, error) {
	done := 0
	if !r.replaced {
		n, err := r.equal(p)
		if err != nil {
			return 0, err
		}
		if done = n; n < len(p) {
			if err := r.replace(); err != nil {
				return done, err
			}
		}
	}
	n, err := r.to.Write(p[done:])
	r.at += int64(n)
	return done + n, err
}

// equal returns the length of the prefix of p that the file already has.
func (r *resumed) equal(p []byte) (int, error) {
	if len(r.earlier) < len(p) {
		r.earlier = make([]byte, len(p))
	}
	n, err := io.ReadFull(r.to, r.earlier[:len(p)])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, err
	}
	if !bytes.Equal(r.earlier[:n], p[:n]) {
		for n = 0; r.earlier[n] == p[n]; n++ {
		}
	}
	r.at += int64(n)
	return n, nil
}

// replace removes the earlier bytes from here on.
func (r *resumed) replace() error {
	r.replaced = true
	if err := r.to.Truncate(r.at); err != nil {
		return err
	}
	_, err := r.to.Seek(r.at, io.SeekStart)
	return err
}

// end removes earlier bytes after the end of the file.
func (r *resumed) end() error {
	if r.replaced {
		return nil
	}
	return r.replace()
}
