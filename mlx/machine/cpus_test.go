package machine

import (
	"fmt"
	"io/fs"
	"testing"
)

func reader(files map[string]string) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}
}

func TestCPUQuota(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  float64
	}{
		{"none", nil, 0},
		{"version 2", map[string]string{"/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/b/cpu.max": "150000 100000\n"},
			1.5},
		{"version 2, a parent's is less", map[string]string{
			"/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
			"/sys/fs/cgroup/a/cpu.max": "50000 100000\n"}, 0.5},
		{"version 2, no limit", map[string]string{"/proc/self/cgroup": "0::/a\n",
			"/sys/fs/cgroup/a/cpu.max": "max 100000\n"}, 0},
		{"version 1", map[string]string{
			"/proc/self/cgroup":                      "4:cpu,cpuacct:/y\n",
			"/sys/fs/cgroup/cpu/y/cpu.cfs_quota_us":  "300000\n",
			"/sys/fs/cgroup/cpu/y/cpu.cfs_period_us": "100000\n"}, 3},
		{"version 1 without a limit", map[string]string{
			"/proc/self/cgroup":                    "4:cpu:/\n",
			"/sys/fs/cgroup/cpu/cpu.cfs_quota_us":  "-1\n",
			"/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 0},
		{"garbage", map[string]string{"/proc/self/cgroup": "0::/a\n", "/sys/fs/cgroup/a/cpu.max": "soon\n"}, 0},
	} {
		if got := cpuQuota(reader(test.files)); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

func TestPhysicalCores(t *testing.T) {
	siblings := map[string]string{}
	for cpu, with := range []string{"0,4", "1,5", "2,6", "3,7", "0,4", "1,5", "2,6", "3,7"} {
		siblings[fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu)] = with
	}
	for _, test := range []struct {
		name  string
		cpus  []int
		files map[string]string
		want  int
	}{
		{"all threads", []int{0, 1, 2, 3, 4, 5, 6, 7}, siblings, 4},
		{"one core's threads", []int{1, 5}, siblings, 1},
		{"some", []int{0, 1, 4}, siblings, 2},
		{"unknown", []int{0, 1, 2}, nil, 3},
	} {
		if got := physicalCores(test.cpus, reader(test.files)); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
	if n := Cores(); n < 1 {
		t.Errorf("%d cores", n)
	}
}
