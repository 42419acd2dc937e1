#include "trireme/data/images/read_images.hpp"

#include "catch.hpp"
#include "data/image_files.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"

using namespace trireme;
using trireme::tests::Bytes;
using trireme::tests::idx_file;
using trireme::tests::TemporaryFolder;
using trireme::tests::write_bytes;

namespace {

void write_mnist(const std::filesystem::path& folder, const std::string& part) {
  write_bytes(folder / (part + "-images-idx3-ubyte"), idx_file({2, 32, 32}, Bytes(2 * 32 * 32, 7)));
  write_bytes(folder / (part + "-labels-idx1-ubyte"), idx_file({2}, {3, 4}));
}

void write_cifar10(const std::filesystem::path& file) { write_bytes(file, Bytes(3 * (1 + 3 * 32 * 32), 5)); }

}  // namespace

TEST_CASE("a folder with files of both kinds is one of MNIST") {
  const TemporaryFolder folder;
  write_mnist(folder.path(), "train");
  write_cifar10(folder.path() / "data_batch_1.bin");
  write_cifar10(folder.path() / "test_batch.bin");
  const data::Images alone = data::read_images(folder.path(), "");
  CHECK(alone.training.shape().channels == 1);
  CHECK(!alone.test);
  CHECK_THROWS_WITH(data::read_images(folder.path(), folder.path()),
                    ContainsSubstring("the test images are CIFAR-10's, but the training images are MNIST's"));
  CHECK_THROWS_WITH(data::read_images(folder.path(), folder.path() / "test_batch.bin"),
                    ContainsSubstring("the test images are CIFAR-10's, but the training images are MNIST's"));
  write_mnist(folder.path(), "t10k");
  CHECK(data::read_images(folder.path(), "").test->count() == 2);
}

TEST_CASE("test images of the other kind, or none") {
  const TemporaryFolder folder;
  const auto mnist = folder.path() / "mnist";
  std::filesystem::create_directory(mnist);
  write_mnist(mnist, "t10k");
  write_cifar10(folder.path() / "data_batch_1.bin");
  CHECK_THROWS_WITH(data::read_images(folder.path(), mnist),
                    ContainsSubstring("the test images are MNIST's, but the training images are CIFAR-10's"));
  CHECK_THROWS_WITH(data::read_images(folder.path(), folder.path()),
                    ContainsSubstring("the folder holds no test images") && ContainsSubstring("test_batch.bin"));
  CHECK(!data::read_images(folder.path(), "").test);
}

TEST_CASE("test images alone") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(data::read_test_images(folder.path()), ContainsSubstring("the folder holds no test images"));
  CHECK_THROWS_WITH(data::read_test_images(folder.path() / "absent"), ContainsSubstring("absent"));
  write_cifar10(folder.path() / "data_batch_1.bin");
  CHECK_THROWS_WITH(data::read_test_images(folder.path()), ContainsSubstring("the folder holds no test images"));
  CHECK(data::read_test_images(folder.path() / "data_batch_1.bin").count() == 3);
  write_cifar10(folder.path() / "test_batch.bin");
  CHECK(data::read_test_images(folder.path()).shape().channels == 3);
  write_mnist(folder.path(), "t10k");
  CHECK(data::read_test_images(folder.path()).shape().channels == 1);
}
