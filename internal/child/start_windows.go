package child

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

// StartTied starts the child in its own job. This process has the only handle of the job, so when this process ends,
// the system closes the job and kills the child.
func (c *Cmd) StartTied(ended <-chan struct{}) error {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return fmt.Errorf("make a job: %w", err)
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		_ = windows.CloseHandle(job)
		return err
	}
	if err := assign(job, uint32(c.Process.Pid)); err != nil {
		_ = c.Process.Kill()
		_ = c.Wait()
		_ = windows.CloseHandle(job)
		return fmt.Errorf("put the process into a job: %w", err)
	}
	go func() {
		<-ended
		_ = windows.CloseHandle(job)
	}()
	return nil
}

func assign(job windows.Handle, pid uint32) error {
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, pid)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(process)
	return windows.AssignProcessToJobObject(job, process)
}
