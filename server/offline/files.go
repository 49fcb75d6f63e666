package offline

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ingotml/ingot/internal/atomicfile"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/manifest/store/disk"
	"github.com/ingotml/ingot/manifest/store/lock"
)

// files are the files and batches of all owners. Each owner has a folder, which its name does not leave. A file or
// batch is described by ID.json; a file's content is in ID, and the results of an unfinished batch are in ID.results.
// Changes of a batch are made with the lock of the folder, since several servers may use one store.
type files struct {
	root     string
	space    *disk.Space
	keepFree int64
	now      func() time.Time
}

// record is a batch as it is stored.
type record struct {
	Owner string `json:"owner"`
	// OutputLife is how long its output files are kept, in seconds.
	OutputLife int64 `json:"output_life"`
	batchJSON
}

var errUnknown = errors.New("unknown id")

// ids matches what newID returns. Other ids are not looked for.
var ids = regexp.MustCompile(`^(file-|batch_)[0-9a-v]{26}$`)

var digits = base32.HexEncoding.WithPadding(base32.NoPadding)

// newID returns an id that no other one equals, and that is after earlier ones.
func (f *files) newID(prefix string) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(f.now().UnixNano()))
	b = append(b, make([]byte, 8)...)
	_, _ = rand.Read(b[8:]) // never fails
	return prefix + strings.ToLower(digits.EncodeToString(b))
}

// derivedID returns the id of a batch's file. It is the same if it is made again after a crash.
func derivedID(batch, what string) string {
	sum := sha256.Sum256([]byte(batch + " " + what))
	return "file-" + strings.ToLower(digits.EncodeToString(sum[:16]))
}

const (
	dataExtension   = ".json"
	resultExtension = ".results"
	partPattern     = "upload-*.part"
)

// folder returns the folder of an owner.
func (f *files) folder(owner string) string {
	sum := sha256.Sum256([]byte(owner))
	return filepath.Join(f.root, fmt.Sprintf("%x", sum[:12]))
}

func (f *files) path(owner, id, extension string) (string, error) {
	if !ids.MatchString(id) {
		return "", errUnknown
	}
	return filepath.Join(f.folder(owner), id+extension), nil
}

// read reads a description.
func (f *files) read(owner, id string, v any) error {
	path, err := f.path(owner, id, dataExtension)
	if err != nil {
		return err
	}
	b, err := disk.ReadLimited(path, limits.BatchRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return errUnknown
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// write writes a description.
func (f *files) write(owner, id string, v any) error {
	path, err := f.path(owner, id, dataExtension)
	if err != nil {
		return err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return f.space.FullDisk(atomicfile.Write(path, 0o600, func(w *os.File) error {
		_, err := w.Write(b)
		return err
	}))
}

// file returns a file.
func (f *files) file(owner, id string) (x fileJSON, err error) {
	if !strings.HasPrefix(id, "file-") {
		return x, errUnknown
	}
	if err = f.read(owner, id, &x); err == nil && f.over(x) {
		err = errors.Join(f.removeFile(owner, id), errUnknown)
	}
	return x, err
}

// over reports whether a file has expired.
func (f *files) over(x fileJSON) bool { return x.ExpiresAt != nil && f.now().Unix() >= *x.ExpiresAt }

// list returns the descriptions of an owner with a prefix, from old to new. Those that cannot be read are left out.
func list[T any](f *files, owner, prefix string, read func(id string) (T, error), created func(T) int64) ([]T,
	error) {
	entries, err := os.ReadDir(f.folder(owner))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []T
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), dataExtension)
		if !ok || !strings.HasPrefix(id, prefix) {
			continue
		}
		if x, err := read(id); err == nil {
			all = append(all, x)
		}
	}
	slices.SortStableFunc(all, func(a, b T) int { return cmp.Compare(created(a), created(b)) }) // then by id
	return all, nil
}

func (f *files) files(owner string) ([]fileJSON, error) {
	return list(f, owner, "file-", func(id string) (fileJSON, error) { return f.file(owner, id) },
		func(x fileJSON) int64 { return x.CreatedAt })
}

func (f *files) batches(owner string) ([]record, error) {
	return list(f, owner, "batch_", func(id string) (record, error) { return f.batch(owner, id) },
		func(b record) int64 { return b.CreatedAt })
}

func (f *files) batch(owner, id string) (b record, err error) {
	if !strings.HasPrefix(id, "batch_") {
		return b, errUnknown
	}
	return b, f.read(owner, id, &b)
}

// update changes a batch. No other process changes it meanwhile.
func (f *files) update(ctx context.Context, owner, id string, change func(*record) error) (b record, err error) {
	unlock, err := f.lock(ctx, "lock")
	if err != nil {
		return b, err
	}
	defer unlock()
	if b, err = f.batch(owner, id); err != nil {
		return b, err
	}
	if err := change(&b); err != nil {
		return b, err
	}
	return b, f.write(owner, id, &b)
}

// lock acquires a lock of the folder.
func (f *files) lock(ctx context.Context, name string) (unlock func(), err error) {
	l, err := lock.Take(ctx, filepath.Join(f.root, name), lock.Options{})
	if err != nil {
		return nil, err
	}
	return func() { lock.Drop(l) }, nil
}

// upload is a file that is being received or written.
type upload struct {
	f     *files
	owner string
	temp  *os.File
	space *disk.Reservation
	size  int64
	most  int64
}

// begin starts a file, whose size most bounds. The caller calls abort, which has no effect after keep.
func (f *files) begin(owner string, most int64) (*upload, error) {
	if err := os.MkdirAll(f.folder(owner), 0o700); err != nil {
		return nil, err
	}
	temp, err := os.CreateTemp(f.folder(owner), partPattern)
	if err != nil {
		return nil, f.space.FullDisk(err)
	}
	return &upload{f: f, owner: owner, temp: temp, space: f.space.Reserve(temp, f.keepFree), most: most}, nil
}

// errTooLarge reports a file that exceeds its limit.
var errTooLarge = errors.New("the file is too large")

// Write implements io.Writer.
func (u *upload) Write(p []byte) (int, error) {
	if u.size+int64(len(p)) > u.most {
		return 0, errTooLarge
	}
	if end := u.size + int64(len(p)); end > u.space.Size() {
		if err := u.space.Extend(end + limits.UploadSpaceStep); err != nil {
			return 0, err
		}
	}
	n, err := u.temp.Write(p)
	u.size += int64(n)
	return n, u.f.space.FullDisk(err)
}

// keep completes the file under an id.
func (u *upload) keep(id, name, purpose string, life int64) (x fileJSON, err error) {
	path, err := u.f.path(u.owner, id, "")
	if err != nil {
		return x, err
	}
	now := u.f.now().Unix()
	x = fileJSON{ID: id, Object: "file", Bytes: u.size, CreatedAt: now, Filename: name, Purpose: purpose,
		Status: "processed"}
	if life > 0 {
		x.ExpiresAt = new(now + life)
	}
	if err := disk.Publish(u.temp, 0o600, path); err != nil {
		return x, u.f.space.FullDisk(err)
	}
	return x, u.f.write(u.owner, id, x)
}

func (u *upload) abort() {
	u.space.Release()
	_ = u.temp.Close()
	_ = os.Remove(u.temp.Name()) // fails after keep
}

// open opens the content of a file.
func (f *files) open(owner, id string) (*os.File, error) {
	path, err := f.path(owner, id, "")
	if err != nil {
		return nil, err
	}
	c, err := place.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errUnknown
	}
	return c, err
}

// results opens the results of an unfinished batch, to continue them.
func (f *files) results(owner, id string) (*os.File, error) {
	path, err := f.path(owner, id, resultExtension)
	if err != nil {
		return nil, err
	}
	return place.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}

// removeFile removes a file: the description first, without which nobody finds the content.
func (f *files) removeFile(owner, id string) error {
	return f.remove(owner, id, dataExtension, "")
}

func (f *files) remove(owner, id string, extensions ...string) error {
	for _, extension := range extensions {
		path, err := f.path(owner, id, extension)
		if err != nil {
			return err
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// unfinished returns the batches of all owners that are not finished, from old to new.
func (f *files) unfinished() (all []record) {
	f.eachOwner(func(dir string, entries []os.DirEntry) {
		for _, e := range entries {
			var b record
			text, err := disk.ReadLimited(filepath.Join(dir, e.Name()), limits.BatchRecord)
			if strings.HasPrefix(e.Name(), "batch_") && strings.HasSuffix(e.Name(), dataExtension) && err == nil &&
				json.Unmarshal(text, &b) == nil && !b.finished() && f.folder(b.Owner) == dir {
				all = append(all, b)
			}
		}
	})
	slices.SortFunc(all, func(a, b record) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// partLife is the age after which a part of an upload is not being written any more.
const partLife = 24 * time.Hour

// tidy removes expired files, and what killed servers left.
func (f *files) tidy() {
	f.eachOwner(func(dir string, entries []os.DirEntry) {
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			if part, _ := filepath.Match(partPattern, e.Name()); part {
				if info, err := e.Info(); err == nil && f.now().Sub(info.ModTime()) > partLife {
					_ = os.Remove(path)
				}
			}
			id, described := strings.CutSuffix(e.Name(), dataExtension)
			var x fileJSON
			if text, err := disk.ReadLimited(path, limits.BatchRecord); described && strings.HasPrefix(id, "file-") &&
				err == nil && json.Unmarshal(text, &x) == nil && f.over(x) {
				_ = os.Remove(path)
				_ = os.Remove(filepath.Join(dir, id))
			}
		}
	})
}

func (f *files) eachOwner(each func(dir string, entries []os.DirEntry)) {
	owners, _ := os.ReadDir(f.root)
	for _, o := range owners {
		if dir := filepath.Join(f.root, o.Name()); o.IsDir() {
			entries, _ := os.ReadDir(dir)
			each(dir, entries)
		}
	}
}
