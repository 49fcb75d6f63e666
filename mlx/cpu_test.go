package mlx

import (
	"testing"
)

func TestCPUFromEnv(t *testing.T) {
	t.Setenv(EnvCPUThreads, "3")
	t.Setenv(EnvCPUMath, "fast")
	t.Setenv(EnvCPUISA, "portable")
	if o, err := CPUFromEnv(); err != nil || o != (CPUOptions{Threads: 3, Fast: true, ISA: "portable"}) {
		t.Errorf("%+v, %v", o, err)
	}
	t.Setenv(EnvCPUMath, "sloppy")
	if _, err := CPUFromEnv(); err == nil {
		t.Error("an unknown math was taken")
	}
	t.Setenv(EnvCPUMath, "")
	t.Setenv(EnvCPUThreads, "many")
	if _, err := CPUFromEnv(); err == nil {
		t.Error("an unknown number of threads was taken")
	}
}
