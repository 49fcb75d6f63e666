package manifest

import (
	"fmt"
	"os"
	"sync"

	"github.com/opencontainers/go-digest"
)

// SpaceError reports that the disk has too little free space for an operation. It matches [ErrNoSpace].
type SpaceError struct {
	Dir        string
	Need, Free int64 // bytes
	Keep       int64 // bytes of Free that are unavailable: reserved for other uploads, or to be kept free
}

func (e *SpaceError) Error() string {
	if e.Keep > 0 {
		return fmt.Sprintf("%s needs %d more bytes, but its disk has only %d free, of which %d are reserved: "+
			"free some space, or choose another folder (INGOT_HOME)", e.Dir, e.Need, e.Free, e.Keep)
	}
	return fmt.Sprintf("%s needs %d more bytes, but its disk has only %d free: "+
		"free some space, or choose another folder (INGOT_HOME)", e.Dir, e.Need, e.Free)
}

func (e *SpaceError) Is(target error) bool { return target == ErrNoSpace }

// noSpace makes the error of a full disk match [ErrNoSpace].
func noSpace(err error) error {
	if err != nil && isDiskFull(err) {
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	return err
}

// fullDisk replaces the error of a full disk by one that names the store and the remedy, instead of a temporary file.
func (s *Store) fullDisk(err error) error {
	if err != nil && isDiskFull(err) {
		return fmt.Errorf("%w: the disk of %s is full: free some space, or choose another folder (INGOT_HOME)",
			ErrNoSpace, s.root)
	}
	return err
}

// CheckSpace returns a [*SpaceError] if the disk does not have need bytes that are free and not reserved by uploads. It
// returns nil if the system does not report free space.
func (s *Store) CheckSpace(need int64) error {
	s.reservations.mu.Lock()
	defer s.reservations.mu.Unlock()
	return s.checkSpace(need, 0)
}

// checkSpace is CheckSpace that also keeps keep bytes free. The caller holds s.reservations.mu.
func (s *Store) checkSpace(need, keep int64) error {
	free, known := s.free(s.root)
	for r := range s.reservations.open {
		keep += r.unallocated()
	}
	if !known || need <= free-keep {
		return nil
	}
	return &SpaceError{Dir: s.root, Need: need, Free: free, Keep: keep}
}

// reservations are the disk space reserved for growing files of this process. Reserved space that is not yet allocated
// counts as used, so that concurrent uploads do not count on the same free space.
type reservations struct {
	mu   sync.Mutex
	open map[*reservation]struct{}
}

// reservation is the disk space reserved for a growing file.
type reservation struct {
	s        *Store
	f        *os.File
	keep     int64 // bytes to keep free on the disk
	reserved int64 // size that the file may reach
}

// newReservation returns an empty reservation for a file. The caller must release it.
func (s *Store) newReservation(f *os.File, keep int64) *reservation {
	r := &reservation{s: s, f: f, keep: keep}
	s.reservations.mu.Lock()
	defer s.reservations.mu.Unlock()
	if s.reservations.open == nil {
		s.reservations.open = map[*reservation]struct{}{}
	}
	s.reservations.open[r] = struct{}{}
	return r
}

// extend reserves space for the file to reach size. If the disk has too little, it returns a [*SpaceError].
func (r *reservation) extend(size int64) error {
	r.s.reservations.mu.Lock()
	defer r.s.reservations.mu.Unlock()
	if size <= r.reserved {
		return nil
	}
	if err := r.s.checkSpace(size-r.reserved, r.keep); err != nil { // the rest is already reserved or allocated
		return err
	}
	r.reserved = size
	return nil
}

// unallocated returns the reserved bytes that are not yet allocated on disk. The caller holds the reservations' mutex.
func (r *reservation) unallocated() int64 {
	info, err := r.f.Stat()
	if err != nil {
		return 0 // the file is closed, so all of it is allocated
	}
	return max(r.reserved-allocated(info), 0)
}

// release removes the reservation.
func (r *reservation) release() {
	r.s.reservations.mu.Lock()
	defer r.s.reservations.mu.Unlock()
	delete(r.s.reservations.open, r)
}

// PartialSpace returns the disk space that an unfinished download of a blob already uses.
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
