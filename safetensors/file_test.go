package safetensors

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestOpen(t *testing.T) {
	path := writeFile(t, t.TempDir(), "m.safetensors", append(raw("{"+entry("a", "U8", "[2]", "[0,2]")+","+entry("b", "U8",
		"[3]", "[2,5]")+"}", 0), "hello"...))
	f := openFile(t, path)
	if f.Path() != path || len(f.Header().Tensors) != 2 {
		t.Errorf("path %s, %d tensors", f.Path(), len(f.Header().Tensors))
	}
	for name, want := range map[string]string{"a": "he", "b": "llo"} {
		tensor, ok := f.Lookup(name)
		if !ok {
			t.Fatalf("no tensor %s", name)
		}
		if got, err := io.ReadAll(f.Reader(tensor)); err != nil || string(got) != want {
			t.Errorf("tensor %s is %q, %v, want %q", name, got, err, want)
		}
	}
	if _, ok := f.Lookup("c"); ok {
		t.Error("found a tensor that does not exist")
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "folder.safetensors")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Open(folder)
	wantError(t, err, nil, folder+": not a regular file")
	_, err = Open(filepath.Join(dir, "none.safetensors"))
	wantError(t, err, fs.ErrNotExist, "")
	path := writeFile(t, dir, "m.safetensors", encode(t, u8("a", 100))[:150])
	_, err = Open(path)
	wantError(t, err, ErrTruncated,
		path+`: tensor "a": truncated file: the file has 150 bytes, but the header describes 228; download it again`)
}

// TestOpenLink opens a symbolic link, as in download caches.
func TestOpenLink(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "blob", encode(t, u8("a", 1)))
	link := filepath.Join(dir, "m.safetensors")
	if err := os.Symlink("blob", link); err != nil {
		t.Skipf("this system lets us make no symbolic links: %v", err)
	}
	openFile(t, link)
}

// TestShrink checks that reading a file that was truncated after it was opened is an error.
func TestShrink(t *testing.T) {
	path := writeFile(t, t.TempDir(), "m.safetensors", encode(t, u8("a", 1000), u8("b", 1000)))
	f := openFile(t, path)
	start := f.Header().DataOffset
	if err := os.Truncate(path, start+1500); err != nil {
		t.Fatal(err)
	}
	a, _ := f.Lookup("a")
	b, _ := f.Lookup("b")
	if n, err := io.Copy(io.Discard, f.Reader(a)); n != 1000 || err != nil {
		t.Errorf("tensor a: %d bytes, %v", n, err)
	}
	want := path + `: tensor "b": truncated file: it ended at byte 1628 of 2128 while the tensor was read`
	n, err := io.Copy(io.Discard, f.Reader(b))
	wantError(t, err, ErrTruncated, want)
	if n != 500 {
		t.Errorf("%d bytes of tensor b were read, want 500", n)
	}
	_, err = f.Reader(b).ReadAt(make([]byte, 10), 700)
	wantError(t, err, ErrTruncated, path+`: tensor "b": truncated file: it ended at byte`)
	// At the end of the tensor, ReadAt returns io.EOF as the interface requires.
	if n, err := f.Reader(a).ReadAt(make([]byte, 10), 995); n != 5 || err != io.EOF {
		t.Errorf("read over the end of a tensor: %d, %v, want 5, EOF", n, err)
	}
	var out bytes.Buffer
	err = Write(&out, []Tensor{b}, nil, func(int) (io.Reader, error) { return f.Reader(b), nil })
	wantError(t, err, ErrTruncated, `tensor "b": `+want)
}

func TestReadClosed(t *testing.T) {
	path := writeFile(t, t.TempDir(), "m.safetensors", encode(t, u8("a", 10)))
	f := openFile(t, path)
	a, _ := f.Lookup("a")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := io.ReadAll(f.Reader(a))
	if !errors.Is(err, os.ErrClosed) {
		t.Errorf("error %v, want %v", err, os.ErrClosed)
	}
	wantError(t, err, os.ErrClosed, path+`: tensor "a": `)
}
