package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/foreign"
	"github.com/ingotml/ingot/manifest/store/disk"
	"github.com/ingotml/ingot/manifest/store/index"
	"github.com/ingotml/ingot/manifest/store/lock"
	"github.com/ingotml/ingot/manifest/verified"
	modelspec "github.com/modelpack/model-spec/specs-go/v1"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Names in the store's folder, in addition to those of the OCI layout.
const (
	BlobsDir      = ocispec.ImageBlobsDir + "/sha256"
	IngestDir     = "ingest"
	QuarantineDir = "quarantine"
	ScoresDir     = "scores"        // logits of base models, a cache; see package runtime/scores
	PartialPrefix = "blob-"         // begins the names of blobs being written, in IngestDir
	SecretFile    = "server-secret" // see [Store.Secret]
)

// Store is a model store on disk. Its methods are safe for concurrent use.
type Store struct {
	root  string
	now   func() time.Time
	locks lock.Locks
	space *disk.Space

	verified *verified.Notes
}

// Option is an option of Open.
type Option func(*Store)

// Command sets the name of the command that this process runs, such as "ingot create", for messages of processes that
// wait for it. The name is stored in a file that other users can read, so it must not include arguments. The default is
// the program's base name.
func Command(name string) Option { return func(s *Store) { s.locks.Command = name } }

// Open opens the store at root, and creates it if the folder is absent or empty. An empty root means $INGOT_HOME, or
// .ingot in the user's home folder. A folder with other content, or with an unknown layout version, is an
// [manifest.ErrNotStore], and a store that others could have changed a [place.ErrUntrusted]. Opening an existing store
// does not write.
func Open(root string, options ...Option) (*Store, error) {
	s, err := at(root, options...)
	if err != nil {
		return nil, err
	}
	if err = s.checkPlace(); err == nil {
		err = s.CheckLayout()
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = s.create()
	}
	if err != nil {
		return nil, fmt.Errorf("open model store %s: %w", s.root, err)
	}
	return s, nil
}

// OpenExisting is like Open but creates nothing. If there is no store, the error is fs.ErrNotExist. A store that lacks
// its oci-layout file only is opened.
func OpenExisting(root string, options ...Option) (*Store, error) {
	s, err := at(root, options...)
	if err != nil {
		return nil, err
	}
	if err = s.checkPlace(); err == nil {
		err = s.CheckLayout()
	}
	if errors.Is(err, fs.ErrNotExist) {
		if blobs, none := os.ReadDir(s.Path(BlobsDir)); none == nil && len(blobs) > 0 {
			err = nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open model store %s: %w", s.root, err)
	}
	return s, nil
}

// at returns the store at root without accessing the disk.
func at(root string, options ...Option) (*Store, error) {
	if root == "" {
		root = os.Getenv("INGOT_HOME")
	}
	if root == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("open model store: no home folder (set INGOT_HOME): %w", err)
		}
		root = filepath.Join(home, ".ingot")
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("open model store: %w", err)
	}
	s := &Store{root: root, now: time.Now, locks: lock.New(root, filepath.Base(os.Args[0])), space: disk.NewSpace(root)}
	s.verified = verified.NewNotes(s.Path(VerifiedFile))
	for _, option := range options {
		option(s)
	}
	return s, nil
}

// Clock replaces the store's clock.
func Clock(now func() time.Time) Option { return func(s *Store) { s.now = now } }

// Waits sets how long to wait for the store's lock before a collection, and for the lock of its index.
func Waits(collect, index time.Duration) Option {
	return func(s *Store) { s.locks.CollectWait, s.locks.IndexWait = collect, index }
}

// Root returns the absolute path of the store's folder.
func (s *Store) Root() string { return s.root }

// Now returns the time by the store's clock.
func (s *Store) Now() time.Time { return s.now() }

// Space returns the free space on the store's disk.
func (s *Store) Space() *disk.Space { return s.space }

// Locks returns the store's locks.
func (s *Store) Locks() lock.Locks { return s.locks }

// Lock acquires the store's lock, shared with other writers. It waits while a collection holds the lock exclusively.
// The caller holds it from its first blob to its last Put. release may be called more than once. The operating system
// releases the lock if the process dies.
func (s *Store) Lock(ctx context.Context) (release func(), err error) { return s.locks.Shared(ctx) }

// Path returns the path of a file in the store's folder.
func (s *Store) Path(elem ...string) string {
	return filepath.Join(append([]string{s.root}, elem...)...)
}

// checkPlace returns a [place.ErrUntrusted] if others could have changed what names mean. root may use the store of any
// user: it gives what stays private to that user, see replaceFileMode.
func (s *Store) checkPlace() error {
	for _, name := range []string{".", ocispec.ImageBlobsDir, BlobsDir, ocispec.ImageIndexFile, VerifiedFile} {
		if err := place.Guarded(s.Path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// CheckLayout validates the oci-layout file. The error is fs.ErrNotExist if there is none.
func (s *Store) CheckLayout() error {
	b, err := disk.ReadLimited(s.Path(ocispec.ImageLayoutFile), 64<<10)
	if err != nil {
		return err
	}
	var layout ocispec.ImageLayout
	if err := json.Unmarshal(b, &layout); err != nil {
		return fmt.Errorf("%s: %v: %w", ocispec.ImageLayoutFile, err, manifest.ErrNotStore)
	}
	if layout.Version != ocispec.ImageLayoutVersion {
		return fmt.Errorf("image layout version is %q, not %s; a newer ingot may support it: %w",
			manifest.Clip(layout.Version), ocispec.ImageLayoutVersion, manifest.ErrNotStore)
	}
	return nil
}

// create creates the layout. It writes the oci-layout file last, which makes the layout valid. Several processes may do
// this concurrently; the index lock keeps one from replacing an index that another has already written to.
func (s *Store) create() error {
	entries, err := os.ReadDir(s.root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if !ownName(e.Name()) {
			return fmt.Errorf("it contains %s but no %s; choose an empty folder (INGOT_HOME): %w",
				e.Name(), ocispec.ImageLayoutFile, manifest.ErrNotStore)
		}
	}
	if err := os.MkdirAll(s.Path(IngestDir), 0o755); err != nil {
		return fmt.Errorf("%w (set INGOT_HOME to use another folder)", err)
	}
	if err := s.MakeBlobsDir(); err != nil {
		return fmt.Errorf("%w (set INGOT_HOME to use another folder)", err)
	}
	// A process that was killed may have made the blobs folder without syncing this one.
	if err := disk.SyncDir(s.Path(ocispec.ImageBlobsDir)); err != nil {
		return err
	}
	unlock, err := s.locks.Index(context.Background())
	if err != nil {
		return err
	}
	defer unlock()
	_, err = os.Lstat(s.Path(ocispec.ImageIndexFile))
	if blobs, _ := os.ReadDir(s.Path(BlobsDir)); errors.Is(err, fs.ErrNotExist) && len(blobs) == 0 {
		if err := s.writeIndex(ocispec.Index{}); err != nil {
			return err
		}
	} // else the index is lost: an empty one would make the blobs garbage
	if err := s.CheckLayout(); !errors.Is(err, fs.ErrNotExist) {
		return err // another process has created it
	}
	if err := s.WriteLayout(); err != nil {
		return err
	}
	_ = disk.SyncDir(filepath.Dir(s.root)) // this user may lack permission to open the parent folder
	return nil
}

// WriteLayout writes the oci-layout file.
func (s *Store) WriteLayout() error {
	b, err := manifest.Marshal(ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion})
	if err != nil {
		return err
	}
	return s.replaceFile(ocispec.ImageLayoutFile, b)
}

// ownName reports whether a file may exist in a folder in which a store is being created: files that create writes, and
// those that file systems and desktops create in an empty folder.
func ownName(name string) bool {
	switch name {
	case ocispec.ImageBlobsDir, ocispec.ImageIndexFile, ocispec.ImageLayoutFile,
		IngestDir, lock.HoldersDir, QuarantineDir, lock.StoreFile, lock.IndexFile, SecretFile, VerifiedFile,
		"lost+found", ".DS_Store":
		return true
	}
	return false
}

// Put stores an image under a name and returns the digest of its manifest. The blobs of all layers must be in the
// store. An existing name is replaced atomically; the blobs of its previous image remain until a collection.
func (s *Store) Put(ctx context.Context, name manifest.Name, img manifest.Image) (digest.Digest, error) {
	d, err := s.put(ctx, name, img)
	if err != nil {
		return "", fmt.Errorf("store %s: %w", name, err)
	}
	return d, nil
}

func (s *Store) put(ctx context.Context, name manifest.Name, img manifest.Image) (digest.Digest, error) {
	name, err := nameToStore(name)
	if err != nil {
		return "", err
	}
	manifestBytes, config, err := manifest.EncodeModelPack(img)
	if err != nil {
		return "", err
	}
	release, err := s.Lock(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	for _, l := range img.Layers {
		if err := s.CheckBlob(l.Digest, l.Size); err != nil {
			return "", fmt.Errorf("layer %s: %w", l.Name, err)
		}
	}
	if _, _, err := s.PutBytes(ctx, config); err != nil {
		return "", err
	}
	d, err := s.putManifest(ctx, manifestBytes)
	if err != nil {
		return "", err
	}
	desc := ocispec.Descriptor{
		MediaType:    ocispec.MediaTypeImageManifest,
		ArtifactType: modelspec.ArtifactTypeModelManifest,
		Digest:       d,
		Size:         int64(len(manifestBytes)),
	}
	index.Describe(&desc, name, img.Size()+int64(len(manifestBytes))+int64(len(config)), img.Config.ModelType, s.now())
	return d, s.setEntry(ctx, name, desc)
}

// nameToStore checks a name to store under; the caller may not have used ParseName.
func nameToStore(name manifest.Name) (manifest.Name, error) {
	if name.Digest != "" {
		return name, &manifest.NameError{Name: name.String(), Reason: "a name to store under must not have a digest"}
	}
	return manifest.ParseName(name.String())
}

// putManifest stores a manifest and makes it and all blobs before it durable, also those that other processes renamed.
func (s *Store) putManifest(ctx context.Context, manifestBytes []byte) (digest.Digest, error) {
	d, _, err := s.PutBytes(ctx, manifestBytes)
	if err != nil {
		return "", err
	}
	return d, disk.SyncDir(s.Path(BlobsDir))
}

// Entry is a model in the store.
type Entry struct {
	Name          manifest.Name // as in the index, with its tag
	Digest        digest.Digest
	Format        string // encoding of the manifest: FormatModelPack or FormatOllama
	Image         manifest.Image
	ManifestBytes []byte // verbatim
}

// Locate finds the manifest of a name, with the rules of [Store.Resolve], and does not read it.
func (s *Store) Locate(ctx context.Context, name manifest.Name) (found manifest.Name, d digest.Digest, err error) {
	err = s.find(ctx, name, func(desc ocispec.Descriptor, n manifest.Name) error {
		found, d = n, desc.Digest
		return nil
	})
	return found, d, err
}

// Resolve finds a model by name. A name with a digest matches an entry with the same host, path and manifest digest,
// and the same tag if the name has one. An unknown name is a [*index.NotFoundError]; a manifest that is not a model
// image is a [manifest.ErrUnknownManifest].
func (s *Store) Resolve(ctx context.Context, name manifest.Name) (e *Entry, err error) {
	err = s.find(ctx, name, func(desc ocispec.Descriptor, found manifest.Name) (err error) {
		e, err = s.ReadEntry(found, desc.Digest)
		return err
	})
	return e, err
}

// ReadEntry decodes the model image whose manifest has a digest. The name is used in the entry and in errors.
func (s *Store) ReadEntry(name manifest.Name, d digest.Digest) (*Entry, error) {
	b, err := s.ReadBlob(d, manifest.MaxManifestSize)
	if err != nil {
		return nil, fmt.Errorf("manifest of %s: %w", name, err)
	}
	m, img, err := s.Decode(b)
	if err == nil {
		err = foreign.CheckTensors(img)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &Entry{Name: name, Digest: d, Format: m.Format, Image: img, ManifestBytes: b}, nil
}
