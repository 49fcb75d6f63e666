package disk

import (
	"fmt"
	"os"
	"sync"

	"github.com/ingotml/ingot/manifest"
)

// SpaceError reports that the disk has too little free space for an operation. It matches [manifest.ErrNoSpace].
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

func (e *SpaceError) Is(target error) bool { return target == manifest.ErrNoSpace }

// NoSpace makes the error of a full disk match [manifest.ErrNoSpace].
func NoSpace(err error) error {
	if err != nil && isDiskFull(err) {
		return fmt.Errorf("%w: %w", manifest.ErrNoSpace, err)
	}
	return err
}

// Space is the free space on the disk of a folder, less what growing files of this process have reserved. Reserved
// space that is not yet allocated counts as used, so that concurrent uploads do not count on the same free space. Its
// methods are safe for concurrent use.
type Space struct {
	Dir  string
	Free func(dir string) (bytes int64, known bool) // replaced by tests

	mu   sync.Mutex
	open map[*Reservation]struct{}
}

// NewSpace returns the space on the disk of a folder.
func NewSpace(dir string) *Space { return &Space{Dir: dir, Free: freeSpace} }

// FullDisk replaces the error of a full disk by one that names the folder and the remedy, instead of a temporary file.
func (s *Space) FullDisk(err error) error {
	if err != nil && isDiskFull(err) {
		return fmt.Errorf("%w: the disk of %s is full: free some space, or choose another folder (INGOT_HOME)",
			manifest.ErrNoSpace, s.Dir)
	}
	return err
}

// Check returns a [*SpaceError] if the disk does not have need bytes that are free and not reserved. It returns nil if
// the system does not report free space.
func (s *Space) Check(need int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.check(need, 0)
}

// check is Check that also keeps keep bytes free. The caller holds s.mu.
func (s *Space) check(need, keep int64) error {
	free, known := s.Free(s.Dir)
	for r := range s.open {
		keep += r.unallocated()
	}
	if !known || need <= free-keep {
		return nil
	}
	return &SpaceError{Dir: s.Dir, Need: need, Free: free, Keep: keep}
}

// Reservation is the disk space reserved for a growing file. It must not be used by several goroutines at once.
type Reservation struct {
	s        *Space
	f        *os.File
	keep     int64 // bytes to keep free on the disk
	reserved int64 // size that the file may reach
}

// Reserve returns an empty reservation for a file, which leaves keep bytes of the disk free. The caller must release
// it.
func (s *Space) Reserve(f *os.File, keep int64) *Reservation {
	r := &Reservation{s: s, f: f, keep: keep}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[*Reservation]struct{}{}
	}
	s.open[r] = struct{}{}
	return r
}

// Size returns the size that the file may reach.
func (r *Reservation) Size() int64 { return r.reserved }

// Extend reserves space for the file to reach size. If the disk has too little, it returns a [*SpaceError].
func (r *Reservation) Extend(size int64) error {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if size <= r.reserved {
		return nil
	}
	if err := r.s.check(size-r.reserved, r.keep); err != nil { // the rest is already reserved or allocated
		return err
	}
	r.reserved = size
	return nil
}

// unallocated returns the reserved bytes that are not yet allocated on disk. The caller holds s.mu.
func (r *Reservation) unallocated() int64 {
	info, err := r.f.Stat()
	if err != nil {
		return 0 // the file is closed, so all of it is allocated
	}
	return max(r.reserved-Allocated(info), 0)
}

// Release removes the reservation.
func (r *Reservation) Release() {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	delete(r.s.open, r)
}
