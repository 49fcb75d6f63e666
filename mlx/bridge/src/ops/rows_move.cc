// Operations that only convert or copy elements. MLX's own operations run on another thread, and for the small arrays
// of a token waking that thread costs more than the work.
#include <algorithm>
#include <cstring>

#include "ops/rows.h"
#include "core/call.h"
#include "core/checks.h"
#include "cpu/matmul/matmul.h"
#include "cpu/rows/rows.h"
#include "cpu/rows/node.h"

namespace ingot {

mx::array as_type(const mx::array& x, mx::Dtype to, Where s) {
  if (to == x.dtype() || !cpu::uses_kernels(x, s) || !cpu::has_kernels(to)) {
    return mx::astype(x, to, s);
  }
  const auto from_type = cpu::Type(cpu::type_index(x.dtype())), to_type = cpu::Type(cpu::type_index(to));
  auto body = [=, n = int64_t(x.size()), from_size = int64_t(x.itemsize()),
               to_size = int64_t(to.size())](const cpu::Memory& m) {
    const auto& kernels = cpu::matmul_kernels();
    cpu::in_pieces(n, 1, [&](int64_t begin, int64_t count) {
      const char* from = cpu::at(m.in[0], begin * from_size);
      char* out = cpu::at(m.out[0], begin * to_size);
      if (to_type == cpu::Type::f32) {
        kernels.widen(from_type, from, reinterpret_cast<float*>(out), count);
        return;
      }
      auto* wide = reinterpret_cast<const float*>(from);
      if (from_type != cpu::Type::f32) {
        auto* work = cpu::scratch<float>(cpu::kRowsScratch, size_t(count));
        kernels.widen(from_type, from, work, count);
        wide = work;
      }
      kernels.narrow(to_type, wide, out, count);
    });
  };
  return cpu::node("as_type", {x}, {x.shape()}, {to}, s, std::move(body))[0];
}

namespace {

// MLX is as fast for larger copies.
constexpr size_t kLittle = 1 << 20;

int64_t bytes_from(const mx::array& x, int axis) {
  int64_t n = int64_t(x.itemsize());
  for (int i = axis; i < int(x.ndim()); i++) {
    n *= x.shape(i);
  }
  return n;
}

}  // namespace

mx::array joined(const std::vector<mx::array>& xs, int axis, Where s) {
  if (xs.size() < 2 || !cpu::on_cpu(s)) {
    return mx::concatenate(xs, axis, s);
  }
  const auto& x = xs[0];
  const int rank = int(x.ndim()), at = axis < 0 ? axis + rank : axis;
  bool ours = at >= 0 && at < rank;
  size_t bytes = 0;
  for (const auto& a : xs) {
    ours = ours && int(a.ndim()) == rank && a.dtype() == x.dtype() && a.size() > 0;
    for (int i = 0; ours && i < rank; i++) {
      ours = i == at || a.shape(i) == x.shape(i);
    }
    bytes += a.nbytes();
  }
  if (!ours || bytes > kLittle) {
    return mx::concatenate(xs, axis, s);
  }
  auto shape = x.shape();
  shape[size_t(at)] = 0;
  std::vector<int64_t> parts;
  for (const auto& a : xs) {
    shape[size_t(at)] += a.shape(at);
    parts.push_back(bytes_from(a, at));
  }
  auto body = [parts, times = int64_t(x.nbytes()) / parts[0]](const cpu::Memory& m) {
    char* to = m.output<char>(0);
    for (int64_t i = 0; i < times; i++) {
      for (size_t j = 0; j < parts.size(); to += parts[j], j++) {
        std::memcpy(to, cpu::at(m.in[j], i * parts[j]), size_t(parts[j]));
      }
    }
  };
  return cpu::node("joined", xs, {std::move(shape)}, {x.dtype()}, s, std::move(body))[0];
}

namespace {

// The slots [begin, end) of an array of `slots` slots, which come from slot `to` of the result on.
struct Part {
  int64_t slots, begin, end, to;
};

std::vector<Part> parts_of(const std::vector<int>& ranges, int n, const std::vector<mx::array>& xs) {
  if (ranges.size() != 2 * xs.size()) {
    refuse("a range is needed for each array");
  }
  const auto& x = xs[0];
  std::vector<Part> parts;
  int64_t to = 0;
  for (size_t i = 0; i < xs.size(); i++) {
    const auto& a = xs[i];
    const int64_t begin = ranges[2 * i], end = ranges[2 * i + 1];
    if (a.ndim() != 4 || a.shape(0) != 1 || a.shape(1) != x.shape(1) || a.shape(3) != x.shape(3) ||
        a.dtype() != x.dtype()) {
      refuse("the arrays must be [1, heads, slots, size] with the same heads, size and type");
    }
    if (begin < 0 || end < begin || end > a.shape(2)) {
      refuse("a range is not within its array");
    }
    parts.push_back({a.shape(2), begin, end, to});
    to += end - begin;
  }
  if (to > n) {
    refuse("the ranges have more slots than the result");
  }
  return parts;
}

// Bytes that a thread copies at a time.
constexpr int64_t kCopied = 256 << 10;
// Bytes that a thread clears at a time: fewer than it copies, because page faults of new memory add to their time.
constexpr int64_t kCleared = 32 << 10;

}  // namespace

mx::array joined_slots(const std::vector<int>& ranges, int n, const std::vector<mx::array>& xs, Where s) {
  const auto parts = parts_of(ranges, n, xs);
  const auto& x = xs[0];
  const mx::Shape shape = {1, x.shape(1), n, x.shape(3)};
  const int64_t bytes = int64_t(x.shape(3)) * int64_t(x.itemsize()), heads = x.shape(1);
  if (!cpu::on_cpu(s) || bytes == 0 || heads == 0 || n == 0) {
    std::vector<mx::array> pieces;
    for (size_t i = 0; i < xs.size(); i++) {
      pieces.push_back(mx::slice(xs[i], {0, 0, int(parts[i].begin), 0},
                                 {1, xs[i].shape(1), int(parts[i].end), xs[i].shape(3)}, s));
    }
    const int left = n - int(parts.back().to + parts.back().end - parts.back().begin);
    pieces.push_back(mx::zeros({1, x.shape(1), left, x.shape(3)}, x.dtype(), s));
    return owned_copy(mx::concatenate(std::move(pieces), 2, s), s);
  }
  // A thread copies slots [begin, end) of the heads' slots in sequence.
  auto body = [parts, bytes, heads, n = int64_t(n)](const cpu::Memory& m) {
    cpu::parallel(heads * n, std::max<int64_t>(1, kCopied / bytes), [&](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t head = begin / n, first = begin % n, last = std::min(n, first + end - begin);
        char* out = m.output<char>(0) + head * n * bytes;
        int64_t at = first;
        for (size_t i = 0; i < parts.size(); i++) {
          const Part& p = parts[i];
          const int64_t to = std::min(last, p.to + p.end - p.begin);
          if (at < to) {
            std::memcpy(out + at * bytes, cpu::at(m.in[i], (head * p.slots + p.begin + at - p.to) * bytes),
                        size_t((to - at) * bytes));
            at = to;
          }
        }
        std::memset(out + at * bytes, 0, size_t((last - at) * bytes));
        begin += last - first;
      }
    });
  };
  return cpu::node("joined_slots", xs, {shape}, {x.dtype()}, s, std::move(body))[0];
}

mx::array zeroed(const mx::Shape& shape, mx::Dtype type, Where s) {
  const auto plain = mx::zeros(shape, type, s);
  const auto bytes = int64_t(bytes_of(plain));
  if (!cpu::on_cpu(s) || bytes < kCleared) {
    return plain;
  }
  auto body = [bytes](const cpu::Memory& m) {
    cpu::parallel(bytes, kCleared, [&](int64_t begin, int64_t end) {
      std::memset(m.output<char>(0) + begin, 0, size_t(end - begin));
    });
  };
  return cpu::node("zeroed", {}, {shape}, {type}, s, std::move(body))[0];
}

mx::array taken(const mx::array& x, const mx::array& indices, int axis, Where s) {
  const bool numbers = indices.dtype() == mx::int32 || indices.dtype() == mx::uint32;
  const size_t rank = indices.ndim() + x.ndim() - 1;
  if (!cpu::on_cpu(s) || axis != 0 || x.ndim() == 0 || x.size() == 0 || indices.size() == 0 || !numbers || rank > 8) {
    return mx::take(x, indices, axis, s);
  }
  auto shape = indices.shape();
  shape.insert(shape.end(), x.shape().begin() + 1, x.shape().end());
  const int64_t bytes = bytes_from(x, 1);
  if (indices.size() * size_t(bytes) > kLittle) {
    return mx::take(x, indices, axis, s);
  }
  auto body = [bytes, count = int64_t(indices.size()), n = int64_t(x.shape(0)),
               negative = indices.dtype() == mx::int32](const cpu::Memory& m) {
    for (int64_t i = 0; i < count; i++) {
      int64_t from = negative ? m.input<int32_t>(1)[i] : int64_t(m.input<uint32_t>(1)[i]);
      // An index out of range cannot be reported from here, but must not read other memory.
      from = std::clamp<int64_t>(from < 0 ? from + n : from, 0, n - 1);
      std::memcpy(m.output<char>(0) + i * bytes, cpu::at(m.in[0], from * bytes), size_t(bytes));
    }
  };
  return cpu::node("taken", {x, indices}, {std::move(shape)}, {x.dtype()}, s, std::move(body))[0];
}

}  // namespace ingot
