package machine

import "testing"

func TestCgroupLimit(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"none", nil, 0},
		{"version 2, own limit", map[string]string{"/proc/self/cgroup": "0::/a/b\n",
			"/sys/fs/cgroup/a/b/memory.max": "1000\n"}, 1000},
		{"version 2, a parent's is less", map[string]string{
			"/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/b/memory.max": "1000\n", "/sys/fs/cgroup/a/memory.max": "400\n"},
			400},
		{"version 2, no limit", map[string]string{"/proc/self/cgroup": "0::/a\n", "/sys/fs/cgroup/a/memory.max": "max\n"}, 0},
		{"version 2, in a namespace", map[string]string{"/proc/self/cgroup": "0::/\n",
			"/sys/fs/cgroup/memory.max": "77\n"}, 77},
		{"version 1", map[string]string{
			"/proc/self/cgroup":                             "5:cpu:/x\n4:hugetlb,memory:/y\n",
			"/sys/fs/cgroup/memory/y/memory.limit_in_bytes": "500\n", "/sys/fs/cgroup/x/memory.max": "1\n"}, 500},
		{"version 1 without a limit", map[string]string{
			"/proc/self/cgroup": "4:memory:/\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		{"both", map[string]string{
			"/proc/self/cgroup": "4:memory:/y\n0::/z\n", "/sys/fs/cgroup/memory/y/memory.limit_in_bytes": "600\n",
			"/sys/fs/cgroup/z/memory.max": "700\n"}, 600},
		{"garbage", map[string]string{"/proc/self/cgroup": "what\n0::/a\n", "/sys/fs/cgroup/a/memory.max": "soon\n"}, 0},
	} {
		if got := cgroupLimit(reader(test.files)); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}

func TestMemory(t *testing.T) {
	if got, all := Memory(), physicalMemory(); got < 0 || all > 0 && (got == 0 || got > all) {
		t.Errorf("memory %d of a machine with %d", got, all)
	}
}
