// Weights: a region of a file as memory that arrays share.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "core/call.h"

namespace ingot {

namespace {

[[noreturn]] void fail_file(const char* doing, const std::string& path) {
  throw std::runtime_error(std::string(doing) + " " + path + ": " + std::strerror(errno));
}

struct Descriptor {
  int fd;
  explicit Descriptor(const std::string& path) : fd(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd < 0) {
      fail_file("opening", path);
    }
  }
  ~Descriptor() { close(fd); }
};

// A mapping of the pages with a range of a file and the 8 bytes before it. It is unmapped when the last array over it
// is destroyed, on any thread.
struct Mapping {
  char* base;
  size_t length;
  char* data;  // of the range
  Mapping(const Descriptor& file, int64_t offset, int64_t bytes, const std::string& path) {
    const int64_t page = sysconf(_SC_PAGESIZE), begin = (offset - 8) / page * page;
    length = size_t(offset + bytes - begin);
    void* p = mmap(nullptr, length, PROT_READ, MAP_PRIVATE, file.fd, off_t(begin));
    if (p == MAP_FAILED) {
      fail_file("mapping", path);
    }
#ifdef MADV_HUGEPAGE
    // Pages that are read from now on are huge pages where the file system supports them, which saves TLB misses.
    madvise(p, length, MADV_HUGEPAGE);
#endif
    base = static_cast<char*>(p);
    data = base + (offset - begin);
    engine().mapped += int64_t(length);
  }
  ~Mapping() {
    munmap(base, length);
    engine().mapped -= int64_t(length);
  }
};

using Data = mx::allocator::Data;
using Buffer = mx::allocator::Buffer;

Data copied(const Descriptor& file, int64_t offset, int64_t length, const std::string& path) {
  reserve(size_t(length), path);
  auto data = mx::allocator::malloc(size_t(length));
  char* to = static_cast<char*>(data.buffer().raw_ptr());
  for (int64_t done = 0; done < length;) {
    ssize_t n = pread(file.fd, to + done, size_t(length - done), offset + done);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n <= 0) {
      fail_file("reading", path);
    }
    done += n;
  }
  return data;
}

// The page size of Apple's machines (16 KiB), to which the blob writer aligns large tensors.
constexpr int64_t kMetalPage = 16384;

Data shared_or_copied(const std::string& path, int64_t offset, int64_t length) {
  Descriptor file(path);
  struct stat st;
  if (fstat(file.fd, &st) != 0) {
    fail_file("reading", path);
  }
  if (offset < 0 || length < 0 || offset > st.st_size || length > st.st_size - offset) {
    throw std::runtime_error(path + " has " + std::to_string(st.st_size) + " bytes; bytes " + std::to_string(offset) +
                             " to " + std::to_string(int64_t(uint64_t(offset) + uint64_t(length))) + " were asked for");
  }
  if (engine().shares_host_memory && offset >= 8) {
    auto map = std::make_shared<Mapping>(file, offset, length, path);
    return Data(Buffer(map->data - 8), [map](Buffer) {});
  }
  if (engine().flavour == "metal" && offset % kMetalPage == 0 && offset > 0 && length > 0) {
    auto map = std::make_shared<Mapping>(file, offset, length, path);
    Buffer buffer = mx::allocator::make_buffer(map->data, size_t(length));
    if (buffer.ptr()) {
      return Data(buffer, [map](Buffer b) { mx::allocator::release(b); });
    }
  }
  return copied(file, offset, length, path);
}

struct Region {
  mx::array bytes;  // owns the memory; its shape is not used, since a region may exceed 2^31 bytes
  int64_t length;
};

}  // namespace

}  // namespace ingot

using namespace ingot;

const char* ig_region_new(const char* path, int64_t offset, int64_t length, void** region) {
  return guard([&] {
    mx::array bytes({0}, mx::uint8, nullptr, {});
    if (length != 0) {
      bytes.set_data(shared_or_copied(path, offset, length));
    } else {
      Descriptor exists{std::string(path)};
      bytes.set_data(mx::allocator::malloc(0));
    }
    *region = new Region{std::move(bytes), length};
  });
}

void ig_region_free(void* region) { delete static_cast<Region*>(region); }

const char* ig_region_array(void* region, int64_t offset, int32_t dtype, const int64_t* shape, int32_t rank,
                            ig_desc* out) {
  return guard([&] {
    auto* r = static_cast<Region*>(region);
    mx::array a(shape_of(shape, rank), dtype_of(dtype), nullptr, {});
    int64_t size = int64_t(a.itemsize());
    if (offset < 0 || offset % size != 0 || offset > r->length || int64_t(bytes_of(a)) > r->length - offset) {
      throw std::out_of_range(to_string(a) + " at byte " + std::to_string(offset) + " does not lie in a region of " +
                              std::to_string(r->length) + " bytes");
    }
    a.copy_shared_buffer(r->bytes, a.strides(), {true, true, a.size() <= 1}, a.size(), offset / size);
    a.set_status(mx::array::Status::available);
    describe(std::move(a), out);
  });
}
