#include "training/image_recipe.hpp"

#include "training/image_archives.hpp"
#include "trireme/core/error.hpp"

using namespace trireme;
using trainer::Differs;

void ImageRecipe::add_archives(trainer::CommandLine& line) {
  add_prefetch(line, "tar archives");
  line.add("bad_samples", bad_samples, {"stop", "skip"},
           "what happens if an image of an archive or a file is damaged, or has no label: stop; skip: the next good one takes "
           "its place, and the log names it",
           Differs::told);
  line.add("bad_samples_most", most_bad_samples, "if a rank skips more than this, the run stops", Differs::allowed);
  line.after_parsing([this, &line] {
    require(most_bad_samples >= 0, "--bad-samples-most {} is below 0", most_bad_samples);
    require(bad_samples == "skip" || !line.given("bad_samples_most"), "--bad-samples-most is for --bad-samples skip");
  });
}

data::BadSampleOptions ImageRecipe::bad_sample_options() const {
  return {.policy = bad_samples == "skip" ? data::OnBadSample::skip : data::OnBadSample::stop, .most = most_bad_samples};
}

data::PrefetchOptions ImageRecipe::ahead_of_archives() const {
  return are_archives(data) ? ahead() : data::PrefetchOptions{.threads = 0};
}

void ImageRecipe::add_image_size(trainer::CommandLine& line) {
  line.add("image_size", image_size, "pixels to which images of tar archives are resized, on each side");
  line.after_parsing([this] {
    require(image_size >= 0 && image_size <= most_width, "--image-size {} is a number of pixels", image_size);
    require((image_size > 0) == are_archives(data), "--image-size is for tar archives, which need it; --data is {}", data);
  });
}

void ImageRecipe::add_classes(trainer::CommandLine& line) {
  line.add("classes", classes, "of tar archives, whose labels lie below; other data have their own");
  line.after_parsing([this] {
    require(classes >= 0 && classes <= most_width, "--classes {} does not lie in [1, {}]", classes, most_width);
    require(classes == 0 || are_archives(data), "--classes is for tar archives, and {} is other data", data);
  });
}

void ImageRecipe::add_test_images(trainer::CommandLine& line) {
  line.add("test_data", test_data, "the same for the test images; not given: those in the folder of --data", Differs::allowed);
}

void ImageRecipe::add_augmentation(trainer::CommandLine& line) {
  line.add("label_smoothing", label_smoothing, "share of a target that is spread over all classes", Differs::told);
  line.set_group("Augmentation");
  line.add("random_resized_crop", random_resized_crop,
           "a random part of an image, with this share of its area or more, becomes as large as the image; 0: all of it",
           Differs::told);
  line.add("crop_padding", augmentation.crop_padding, "pixels by which an image is padded before a part of its size is taken");
  line.add("flip", augmentation.horizontal_flip, "each image is mirrored with probability 1/2");
  line.add("rotation", augmentation.rotation, "the largest turn, in degrees");
  line.add("rand_augment", rand_augment, "operations of RandAugment on each image: turns, shifts, colours", Differs::told);
  line.add("rand_augment_magnitude", rand_augment_magnitude, "how strong they are, below 31", Differs::told);
  line.add("brightness", augmentation.brightness, "the largest change, as a share");
  line.add("contrast", augmentation.contrast, "the largest change, as a share");
  line.add("saturation", augmentation.saturation, "the largest change, as a share");
  line.add("hue", augmentation.hue, "the largest change, in turns of the circle of colours, up to 0.5");
  line.add("random_erasing", random_erasing, "the probability that a random box of an image gets the mean colour",
           Differs::told);
  line.add("mixup_alpha", augmentation.mixup_alpha, "of Mixup: images are laid over each other, and so are labels",
           Differs::told);
  line.add("cutmix_alpha", augmentation.cutmix_alpha,
           "of CutMix: a box is another image's; with both each has half of the images", Differs::told);
  line.add("mix_probability", augmentation.mix_probability, "of an image to be mixed at all", Differs::told);
  line.after_parsing([this] {
    require(label_smoothing >= 0 && label_smoothing < 1, "--label-smoothing {} does not lie in [0, 1)", label_smoothing);
    finish_augmentation();
  });
}

void ImageRecipe::finish_augmentation() {
  require(augmentation.crop_padding >= 0 && augmentation.rotation >= 0 && augmentation.brightness >= 0 &&
              augmentation.contrast >= 0 && augmentation.saturation >= 0 && augmentation.hue >= 0,
          "--crop-padding, --rotation, --brightness, --contrast, --saturation and --hue are 0 or more");
  require(random_resized_crop >= 0 && random_resized_crop <= 1, "--random-resized-crop {} does not lie in [0, 1]",
          random_resized_crop);
  require(rand_augment >= 0, "--rand-augment {} is a number of operations, 0 or more", rand_augment);
  require(rand_augment > 0 || rand_augment_magnitude == default_magnitude,
          "--rand-augment-magnitude is for --rand-augment: give that too, such as --rand-augment 2");
  require(random_erasing >= 0 && random_erasing <= 1, "--random-erasing {} does not lie in [0, 1]", random_erasing);
  const bool mixes = augmentation.mixup_alpha > 0 || augmentation.cutmix_alpha > 0;
  require(mixes || augmentation.mix_probability == 1,
          "--mix-probability is for --mixup-alpha and --cutmix-alpha: give one of them too");
  if (random_resized_crop > 0) augmentation.random_resized_crop = data::RandomResizedCrop{.scale = {random_resized_crop, 1}};
  if (rand_augment > 0) {
    augmentation.rand_augment = data::RandAugment{.num_ops = rand_augment, .magnitude = rand_augment_magnitude};
  }
  if (random_erasing > 0) augmentation.random_erasing = data::RandomErasing{.p = random_erasing};
}
