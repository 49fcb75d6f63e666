// Installs the handler, unless it is there already; begin is what its line begins with. Gives 0 or an errno.
int ig_truncated_install(const char* begin);

// Has the handler look at a file that a mapping needs so many bytes of. Files are watched for good. Gives 0 or an
// errno.
int ig_truncated_watch(const char* path, long long size);
