package manifest

import (
	"fmt"
	"os"
	"sync"

	"github.com/opencontainers/go-digest"
)

// SpaceError says that the disk has no room for what is to come. It is an [ErrNoSpace].
type SpaceError struct {
	Dir        string
	Need, Free int64 // bytes
	Keep       int64 // bytes of Free that are not for this use: other uploads have been promised them, or they stay free
}

func (e *SpaceError) Error() string {
	if e.Keep > 0 {
		return fmt.Sprintf("%s needs %d bytes more than what is there, and its disk has %d, of which %d are kept free: "+
			"free some space, or choose another folder (INGOT_HOME)", e.Dir, e.Need, e.Free, e.Keep)
	}
	return fmt.Sprintf("%s needs %d bytes more than what is there, and its disk has %d: free some space, or choose another folder (INGOT_HOME)",
		e.Dir, e.Need, e.Free)
}

func (e *SpaceError) Is(target error) bool { return target == ErrNoSpace }

// noSpace makes the errors of a full disk [ErrNoSpace]s.
func noSpace(err error) error {
	if err != nil && isDiskFull(err) {
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	return err
}

// fullDisk makes the error of a full disk one that names the store and the remedy, and no file that is about to go.
func (s *Store) fullDisk(err error) error {
	if err != nil && isDiskFull(err) {
		return fmt.Errorf("%w: the disk of %s is full: free some space, or choose another folder (INGOT_HOME)", ErrNoSpace, s.root)
	}
	return err
}

// CheckSpace tells early that this many bytes will not fit beside what is there and what has been promised to uploads.
// Where the system does not tell how much room there is, it says nothing.
func (s *Store) CheckSpace(need int64) error {
	s.rooms.mu.Lock()
	defer s.rooms.mu.Unlock()
	return s.checkSpace(need, 0)
}

// checkSpace is CheckSpace that leaves room free. The caller holds s.rooms.mu.
func (s *Store) checkSpace(need, keep int64) error {
	free, known := s.free(s.root)
	for r := range s.rooms.open {
		keep += r.pending()
	}
	if !known || need <= free-keep {
		return nil
	}
	return &SpaceError{Dir: s.root, Need: need, Free: free, Keep: keep}
}

// rooms are the files that grow in this process. What has been promised to them and is not on the disk yet counts as
// taken, so that several of them at once do not find the same room free.
type rooms struct {
	mu   sync.Mutex
	open map[*room]struct{}
}

// room is the space of a file that grows.
type room struct {
	s        *Store
	f        *os.File
	keep     int64 // bytes that stay free on the disk
	promised int64 // size that the file may reach
}

// newRoom begins to count a file, to which nothing has been promised yet. The caller releases the room.
func (s *Store) newRoom(f *os.File, keep int64) *room {
	r := &room{s: s, f: f, keep: keep}
	s.rooms.mu.Lock()
	defer s.rooms.mu.Unlock()
	if s.rooms.open == nil {
		s.rooms.open = map[*room]struct{}{}
	}
	s.rooms.open[r] = struct{}{}
	return r
}

// extend promises room up to a size of the file; one that the disk has no room for is a [*SpaceError].
func (r *room) extend(size int64) error {
	r.s.rooms.mu.Lock()
	defer r.s.rooms.mu.Unlock()
	if size <= r.promised {
		return nil
	}
	if err := r.s.checkSpace(size-r.promised, r.keep); err != nil { // what it was promised before is pending or taken
		return err
	}
	r.promised = size
	return nil
}

// pending is what the file may still take of the disk. The caller holds the lock of the rooms.
func (r *room) pending() int64 {
	info, err := r.f.Stat()
	if err != nil {
		return 0 // it is closed: all of it is there
	}
	return max(r.promised-allocated(info), 0)
}

// release stops counting the file.
func (r *room) release() {
	r.s.rooms.mu.Lock()
	defer r.s.rooms.mu.Unlock()
	delete(r.s.rooms.open, r)
}

// PartialSpace is how much room an unfinished download of a blob takes up already.
func (s *Store) PartialSpace(d digest.Digest) int64 {
	if !validDigest(d) {
		return 0
	}
	info, err := os.Lstat(s.path(ingestDir, d.Encoded()+partSuffix))
	if err != nil {
		return 0
	}
	return allocated(info)
}
