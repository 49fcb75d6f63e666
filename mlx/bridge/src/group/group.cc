#include "group/group.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <numeric>
#include <stdexcept>

#include "core/call.h"
#include "core/checks.h"
#include "cpu/matmul/matmul.h"
#include "cpu/node.h"
#include "cpu/rows/node.h"
#include "cpu/scratch.h"

namespace ingot {

namespace {

constexpr int kGroupScratch = 15;

// The groups of all threads. An index is not used again.
struct Groups {
  std::mutex lock;
  std::vector<std::shared_ptr<Transport>> list;
};

Groups& groups() {
  static auto* all = new Groups;
  return *all;
}

std::shared_ptr<Transport> group_at(int index) {
  auto& all = groups();
  std::lock_guard lock(all.lock);
  if (index < 0 || size_t(index) >= all.list.size() || !all.list[size_t(index)]) {
    throw std::invalid_argument("there is no group " + std::to_string(index) + ", or it was closed");
  }
  return all.list[size_t(index)];
}

void need_cpu(mx::StreamOrDevice s) {
  if (!cpu::on_cpu(s)) {
    refuse("groups of ranks need an engine for the CPU");
  }
}

void need_float32(const char* what, const mx::array& x) {
  if (x.dtype() != mx::float32) {
    refuse(std::string(what) + " adds float32, not " + to_string(x));
  }
}

void need_other(const Transport& group, int rank) {
  if (rank < 0 || rank >= group.size() || rank == group.rank()) {
    refuse("rank " + std::to_string(group.rank()) + " of " + std::to_string(group.size()) +
           " exchanges arrays with rank " + std::to_string(rank));
  }
}

}  // namespace

size_t sum_size(cpu::Type type) { return type == cpu::Type::f32 ? sizeof(float) : sizeof(uint16_t); }

void round_sums(const float* sums, void* out, cpu::Type type, int64_t n) {
  if (type == cpu::Type::f32) {
    std::memcpy(out, sums, size_t(n) * sizeof(float));
  } else {
    cpu::matmul_kernels().narrow(type, sums, out, n);
  }
}

mx::array all_sum(const mx::array& x, int group, mx::Dtype as, mx::StreamOrDevice s) {
  need_cpu(s);
  need_float32("all_sum", x);
  if (!cpu::has_kernels(as)) {
    refuse("all_sum rounds to float32, float16 or bfloat16");
  }
  const auto type = cpu::Type(cpu::type_index(as));
  auto body = [by = group_at(group), type, n = int64_t(x.size())](const cpu::Memory& m) {
    by->all_sum(m.input<float>(0), m.out[0], type, n);
  };
  return cpu::node("all_sum", {x}, {x.shape()}, {as}, s, std::move(body))[0];
}

mx::array broadcast_from(const mx::array& x, int group, int root, mx::StreamOrDevice s) {
  need_cpu(s);
  need_float32("broadcast", x);
  auto by = group_at(group);
  if (root < 0 || root >= by->size()) {
    refuse("broadcast from rank " + std::to_string(root) + " of " + std::to_string(by->size()));
  }
  auto body = [by, root, n = int64_t(x.size())](const cpu::Memory& m) {
    const float* in = m.input<float>(0);
    if (by->rank() != root) {
      float* zeros = cpu::scratch<float>(kGroupScratch, size_t(n));
      std::fill(zeros, zeros + n, 0.0f);
      in = zeros;
    }
    by->all_sum(in, m.out[0], cpu::Type::f32, n);
  };
  return cpu::node("broadcast", {x}, {x.shape()}, {x.dtype()}, s, std::move(body))[0];
}

mx::array all_gather(const mx::array& x, int group, const std::vector<int>& widths, mx::StreamOrDevice s) {
  need_cpu(s);
  auto by = group_at(group);
  bool fits = x.ndim() > 0 && int(widths.size()) == by->size();
  int64_t total = 0;
  for (int w : widths) {
    fits = fits && w > 0;
    total += w;
  }
  if (!fits || widths[size_t(by->rank())] != x.shape(-1) || total > std::numeric_limits<int>::max()) {
    refuse("all_gather: " + to_string(x) + " of rank " + std::to_string(by->rank()) + " does not fit the widths of " +
           std::to_string(by->size()) + " ranks");
  }
  auto shape = x.shape();
  shape.back() = int(total);
  const int64_t size = int64_t(x.itemsize()), rows = int64_t(x.size()) / x.shape(-1);
  auto body = [=](const cpu::Memory& m) {
    // Each rank's bytes are its rows, one after the other, and what is missing to the longest.
    const int64_t bytes = rows * size * *std::max_element(widths.begin(), widths.end());
    const int64_t own = rows * size * widths[size_t(by->rank())];
    char* all = cpu::scratch<char>(kGroupScratch, size_t(bytes * (by->size() + 1)));
    char* in = all + bytes * by->size();
    std::memcpy(in, m.in[0], size_t(own));
    std::memset(in + own, 0, size_t(bytes - own));
    by->all_gather(in, all, bytes);
    char* out = m.output<char>(0);
    for (int64_t row = 0; row < rows; row++) {
      for (int r = 0; r < by->size(); r++) {
        const int64_t width = size * widths[size_t(r)];
        std::memcpy(out, all + r * bytes + row * width, size_t(width));
        out += width;
      }
    }
  };
  return cpu::node("all_gather", {x}, {shape}, {x.dtype()}, s, std::move(body))[0];
}

mx::array sent(const mx::array& x, int group, int to, mx::StreamOrDevice s) {
  need_cpu(s);
  auto by = group_at(group);
  need_other(*by, to);
  auto body = [by, to, bytes = int64_t(x.nbytes())](const cpu::Memory& m) {
    by->send(m.input<char>(0), bytes, to);
    if (m.out[0] != m.in[0]) {
      std::memcpy(m.out[0], m.in[0], size_t(bytes));
    }
  };
  return cpu::node("send", {x}, {x.shape()}, {x.dtype()}, s, std::move(body), {{0, 0, false}})[0];
}

mx::array received(int group, int from, mx::Dtype as, const std::vector<int>& shape, mx::StreamOrDevice s) {
  need_cpu(s);
  auto by = group_at(group);
  need_other(*by, from);
  for (int n : shape) {
    if (n < 1) {
      refuse("receive: the shape has an axis of " + std::to_string(n));
    }
  }
  mx::array like(to_shape(shape), as, nullptr, {});
  reserve(like);
  auto body = [by, from, bytes = int64_t(bytes_of(like))](const cpu::Memory& m) {
    by->receive(m.output<char>(0), bytes, from);
  };
  return cpu::node("receive", {}, {like.shape()}, {as}, s, std::move(body))[0];
}

}  // namespace ingot

using namespace ingot;

const char* ig_group_join(const char* backend, const char* name, int32_t rank, int32_t size, int64_t limit_ms,
                          int32_t* group) {
  return guard([&] {
    if (limit_ms < 1) {
      refuse("a group needs a limit of time");
    }
    auto made = std::strcmp(backend, "local") == 0 ? join_local(name, rank, size, Limit(limit_ms))
                                                   : join_backend(backend, Limit(limit_ms));
    auto& all = groups();
    std::lock_guard lock(all.lock);
    all.list.push_back(made);
    group[0] = int32_t(all.list.size()) - 1;
    group[1] = made->rank();
    group[2] = made->size();
  });
}

void ig_group_leave(int32_t group) {
  auto& all = groups();
  std::shared_ptr<Transport> last;  // destroyed without the lock
  std::lock_guard lock(all.lock);
  if (group >= 0 && size_t(group) < all.list.size()) {
    last = std::move(all.list[size_t(group)]);
    all.list[size_t(group)] = nullptr;
  }
}
