// Installs the handler if it is not installed yet. begin is the start of its line. Returns 0 or an errno.
int ig_truncated_install(const char* begin);

// Registers a mapped file with the handler; the mapping needs its first size bytes. Files are never unregistered.
// Returns 0 or an errno.
int ig_truncated_watch(const char* path, long long size);
