// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <decant/chain/decoder.hpp>
#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/draws.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>
#include <decant/generate/limits.hpp>
#include <decant/search/beam_lanes.hpp>
#include <decant/search/beam_options.hpp>
#include <decant/search/beam_selection.hpp>
#include <decant/search/finished_pool.hpp>
#include <decant/search/hypothesis_links.hpp>

namespace decant {

/// The beam search of one prompt, without a model: rows of logits in, lanes out. For engines that run their own passes;
/// beam_stream and beam_search drive it over a BatchModel.
///
///     while (!search.ended()) {
///       // what the lanes stand for follows search.drops(), then search.forks()
///       // a pass: append search.input(lane) to each of search.lanes()
///       search.advance([&](std::size_t lane) { return row_of(lane); });
///     }
///
/// Every step extends all live hypotheses, ranks the continuations by log-probability, and takes the best
/// max(2, 1 + number of end tokens) * width of them. Those that end and are among the best `width` go to the finished
/// ones, of which the best `width` by score are kept; the best `width` that do not end live on. With fewer
/// continuations there are fewer hypotheses. Ties go to the better parent, then to the lower id. At the maximum length
/// what is left ends. A hypothesis whose row is empty or not finite ends without a result.
///
/// A row costs a pass, a sum of exponentials and a selection; O(steps * width) links are kept, and in steady state
/// nothing else allocates. Errors: parameter_error for options that break a rule (beam_options::validate). Misuse: an
/// empty prompt, a sampler without a law, processors or a sampler that keep
/// state.
/// References: Graves, "Sequence transduction with recurrent neural networks", 2012, arXiv 1211.3711; Kasai et al.,
/// "A call for clarity in beam search: how it works and when it stops", 2022, arXiv 2204.05424 (patience); see also
/// length_penalty, coverage_options, diversity_options, required_phrases.
class beam {
 public:
  beam(std::span<const token_id> prompt, beam_options options)
      : options_(std::move(options)),
        prompt_(prompt.begin(), prompt.end()),
        draws_(draw_stream(options_.seed, options_.sequence).with_hook(options_.hook)) {
    detail::raise_if(options_.validate());
    DECANT_ASSERT(!prompt.empty(), "a search needs a prompt of at least one token");
    DECANT_ASSERT(!options_.processors.keeps_state(), "processors in a search may keep no state");
    DECANT_ASSERT(!options_.sampling || options_.sampling->sampler.has_law(), "a search samples from a law");
    DECANT_ASSERT(!options_.sampling || !options_.sampling->sampler.keeps_state(),
                  "the sampler of a search may keep no state");
    room_ = detail::room_left(options_, prompt.size());
    needs_context_ = !options_.processors.off() || options_.sampling || options_.stop || !options_.coverage.off() ||
                     options_.diversity.groups > 1;
    const std::size_t root = lanes_.start();
    lanes_[root].constraint = options_.constraint;
    if (needs_context_) lanes_[root].tokens = prompt_;
    groups_.assign(options_.diversity.groups, group(group_width(), {root_link, root, 0, 0}));
    links_.reserve(std::min(2 * room_ * std::min(options_.width, most_reserved), most_reserved));
    if (room_ > 0) return;
    end_all(search_end::length);
    hand_on();
  }

  /// Whether there is nothing more to do.
  [[nodiscard]] bool ended() const {
    return std::ranges::all_of(groups_, [](const group& g) { return g.end != search_end::none; });
  }

  // ---- what a model has to follow

  /// The lanes whose rows the next step needs.
  [[nodiscard]] std::span<const std::size_t> lanes() const { return lanes_.in_use(); }
  /// The lanes that ended with the last step.
  [[nodiscard]] std::span<const std::size_t> drops() const { return lanes_.drops(); }
  /// The lanes that began with it, each with all that another holds. After the drops, whose numbers they may have.
  [[nodiscard]] std::span<const beam_lanes::fork_event> forks() const { return lanes_.forks(); }

  /// What is to be appended to a lane before its row: the prompt, or a token.
  [[nodiscard]] std::span<const token_id> input(std::size_t lane) {
    if (step_ == 0) return prompt_;
    return {&lanes_[lane].last, 1};
  }

  // ---- steps

  /// Makes a step. `row_of(lane)` is the row of logits after the lane's tokens, in any form that candidates::bind
  /// takes. `place_of(lane)` is where the model holds a lane, for an alignment callback; without it lanes are
  /// sequences, and the pass was over lanes() in that order.
  template <class RowOf, class PlaceOf>
  void advance(RowOf row_of, PlaceOf place_of) {
    DECANT_ASSERT(!ended(), "the search has ended");
    add_attention(place_of);
    chosen_.clear();
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].end != search_end::none) {
        choose_for_ended();
        continue;
      }
      found_.clear();
      for (std::size_t rank = 0; rank < groups_[g].live.size(); ++rank) {
        const detail::bound_row bound(row_, row_of(groups_[g].live[rank].lane));
        extend(g, rank);
      }
      select(g);
    }
    if (!report_step()) {
      for (group& g : groups_) keep_unfinished(g, g.next, step_ + 1);
      end_all(search_end::cancelled);
    }
    hand_on();
    ++step_;
  }
  template <class RowOf>
  void advance(RowOf row_of) {
    advance(row_of, [item = std::size_t{0}](std::size_t lane) mutable { return batch_place{lane, item++}; });
  }

  /// Ends the search. What lives then counts among the results, as it stands.
  void cancel() {
    if (step_ > 0) {
      for (group& g : groups_) keep_unfinished(g, g.live, step_);
    }
    end_all(search_end::cancelled);
    hand_on();
  }

  /// The results so far, the best first.
  [[nodiscard]] beam_result result() const {
    std::vector<std::pair<std::size_t, const finished_hypothesis*>> ranked;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      for (const finished_hypothesis& ended : groups_[g].finished.kept()) ranked.emplace_back(g, &ended);
    }
    std::ranges::sort(ranked, [](const auto& a, const auto& b) {
      // Equal ones stay in their order.
      return a.second->score != b.second->score ? a.second->score > b.second->score : a < b;
    });
    if (ranked.size() > options_.n_best) ranked.resize(options_.n_best);
    beam_result all;
    for (const auto& [g, ended] : ranked) {
      all.hypotheses.push_back({links_.tokens(ended->link), ended->log_prob, ended->score, ended->diversity,
                                ended->coverage, ended->finish, ended->end_token, g});
    }
    all.end = end_;
    all.steps = step_;
    all.status = not_finite_
                     ? row_status::not_finite
                     : (all.hypotheses.empty() && end_ == search_end::exhausted ? row_status::empty : row_status::ok);
    return all;
  }

  /// All hypotheses that lived: what the nodes of a trace refer to.
  [[nodiscard]] const hypothesis_links& links() const { return links_; }

 private:
  struct live_hypothesis {
    hypothesis_link link = root_link;
    std::size_t lane = 0;
    double log_prob = 0;
    double diversity = 0;
  };

  /// Beams that compete with each other alone.
  struct group {
    group(std::size_t width, const live_hypothesis& root) : live{root}, finished(width) {}

    std::vector<live_hypothesis> live, next;
    finished_pool finished;
    std::size_t finished_count = 0;
    search_end end = search_end::none;
  };

  /// Storage for so many is taken in advance, so that steps do not allocate; more is taken when it is needed.
  static constexpr std::size_t most_reserved = 1 << 16;

  /// The score of a hypothesis that ends.
  struct final_score {
    double total, coverage;
  };

  [[nodiscard]] std::size_t group_width() const { return options_.width / options_.diversity.groups; }
  /// So many that, however many of them end, a full beam is left.
  [[nodiscard]] std::size_t candidate_count() const {
    return std::max<std::size_t>(2, 1 + options_.end_tokens.size()) * group_width();
  }
  [[nodiscard]] bool is_end(token_id token) const { return detail::is_among(options_.end_tokens, token); }

  [[nodiscard]] step_context context_of(std::size_t lane) {
    const draw_stream draws = draws_.child(step_).at(prompt_.size() + step_);
    if (!needs_context_) return {{}, 0, draws};
    return {lanes_[lane].tokens, prompt_.size(), draws};
  }

  // ---- extending

  template <class PlaceOf>
  void add_attention(PlaceOf& place_of) {
    if (options_.coverage.off()) return;
    for (const std::size_t lane : lanes_.in_use()) {
      const batch_place place = place_of(lane);
      const auto weights = options_.coverage.alignment({place.sequence, place.item, context_of(lane)});
      std::vector<double>& sums = lanes_[lane].attention;
      sums.resize(weights.size());
      for (std::size_t s = 0; s < weights.size(); ++s) sums[s] += static_cast<double>(weights[s]);
    }
  }

  /// Finds the best continuations of one hypothesis, whose row is bound.
  void extend(std::size_t g, std::size_t rank) {
    const live_hypothesis& parent = groups_[g].live[rank];
    const step_context context = context_of(parent.lane);
    check_ends();
    double normaliser = log_mass();
    if (!good_row()) return;
    // Counted from the largest, so that a row far from 0 loses nothing in its log-probabilities.
    row_.affine(1, -row_.max());
    if (!options_.processors.off()) {
      row_.affine(1, -normaliser);
      normaliser = 0;
      options_.processors(row_, context);
    }
    allow(lanes_[parent.lane].constraint);
    if (!good_row()) return;
    if (options_.renormalise) normaliser = row_.max() + log_mass();
    measure_changes(g, context);
    const auto found = [&](token_id token) {
      const double change = change_of(token);
      const double log_prob = row_.max() + row_.below_max(token) - normaliser;
      const double in_rank = options_.diversity.counts == penalty::in_score ? parent.diversity + change : change;
      found_.push_back({parent.log_prob + log_prob + in_rank, log_prob, change, rank, token,
                        lanes_[parent.lane].constraint.progress_after(token), is_end(token)});
    };
    if (options_.sampling) {
      draw_from(g, rank, context, found);
    } else {
      take_best(parent, found);
    }
  }

  [[nodiscard]] double log_mass() { return options_.exact_sums ? row_.log_mass() : row_.quick_log_mass(); }

  void check_ends() const {
    DECANT_ASSERT(std::ranges::all_of(
                      options_.end_tokens,
                      [&](token_id end) { return end >= 0 && static_cast<std::size_t>(end) < row_.vocabulary_size(); }),
                  "an end token lies outside the vocabulary");
  }

  [[nodiscard]] bool good_row() {
    const row_status status = row_.status();
    not_finite_ = not_finite_ || status == row_status::not_finite;
    return status == row_status::ok;
  }

  /// Removes what may not come now: ends too early, and what the constraint forbids.
  void allow(any_constraint& constraint) {
    const bool may_end = step_ >= options_.min_new_tokens && constraint.finished();
    if (constraint) {
      mask_.assign((row_.vocabulary_size() + 63) / 64, 0);
      constraint.fill(mask_);
      for (const token_id end : options_.end_tokens) {
        mask_[static_cast<std::size_t>(end) / 64] |= std::uint64_t{1} << (static_cast<std::size_t>(end) % 64);
      }
      row_.allow(mask_);
    }
    if (may_end) return;
    for (const token_id end : options_.end_tokens) row_.ban(end);
  }

  /// Finds what dissimilarity from the groups before adds to which tokens.
  void measure_changes(std::size_t g, const step_context& context) {
    changes_.clear();
    if (g > 0 && options_.diversity.strength > 0) options_.diversity.measure({g, chosen_, context}, changes_);
    std::ranges::sort(changes_, {}, &token_dissimilarity::token);
  }
  [[nodiscard]] double change_of(token_id token) const {
    const auto change = std::ranges::lower_bound(changes_, token, {}, &token_dissimilarity::token);
    const bool listed = change != changes_.end() && change->token == token;
    return listed ? math::product(options_.diversity.strength, change->amount) : 0;
  }

  template <class Found>
  void take_best(const live_hypothesis& parent, Found found) {
    // A token that is lowered makes room for one further down; one that is raised may come from anywhere.
    wanted_.clear();
    for (const entry& e : row_.descending(candidate_count() + changes_.size())) wanted_.push_back(e.id);
    const std::size_t largest = wanted_.size();
    for (const token_dissimilarity& change : changes_) wanted_.push_back(change.token);
    lanes_[parent.lane].constraint.advancing(wanted_);
    if (wanted_.size() > largest) {
      std::erase_if(wanted_, [&](token_id token) { return !row_.contains(token); });
      std::ranges::sort(wanted_);
      wanted_.erase(std::unique(wanted_.begin(), wanted_.end()), wanted_.end());
    }
    for (const token_id token : wanted_) found(token);
  }

  template <class Found>
  void draw_from(std::size_t g, std::size_t rank, const step_context& context, Found found) {
    any_sampler& sampler = options_.sampling->sampler;
    const std::size_t draws = options_.sampling->draws * (step_ == 0 ? group_width() : 1);
    sampler.narrow(row_, context);
    for (std::size_t i = 0; i < draws; ++i) {
      const draw_stream stream = i == 0 ? context.draws : context.draws.child(i);
      const auto index = static_cast<std::uint32_t>(g * group_width() + rank);
      const token_id token = row_.draw(stream, purpose::sample, index);
      if (token == no_token) return;
      found(token);
      row_.ban(token);
    }
  }

  // ---- selecting

  void select(std::size_t g) {
    group& here = groups_[g];
    const std::size_t width = group_width();
    if (!options_.sampling && options_.constraint.goal() == 0) keep_best(found_, candidate_count());
    std::ranges::sort(found_, ranks_before);
    const bool last_step = step_ + 1 >= room_;
    here.next.clear();
    stages_.begin(options_.constraint.goal() + 1, width);
    for (extension& e : found_) {
      e.finish = why_ends(here, e, last_step);
      e.fate = candidate_fate::outranked;
      if (e.finish == finish_reason::none) {
        stages_.count(e.stage);
        continue;
      }
      const bool high = stages_.place(e.stage) < width;
      e.fate = high ? end_with(here, e) : candidate_fate::ended_low;
    }
    stages_.share_out();
    for (extension& e : found_) {
      if (e.finish == finish_reason::none && stages_.take(e.stage)) e.fate = candidate_fate::live;
    }
    for (extension& e : found_) {
      if (e.finish != finish_reason::none) continue;
      if (e.fate == candidate_fate::outranked && stages_.take_spare()) e.fate = candidate_fate::live;
      if (e.fate == candidate_fate::live) live_on(here, e);
    }
    choose(last_step);
    trace(g);
    end_group_if_settled(here, last_step);
  }

  [[nodiscard]] finish_reason why_ends(const group& g, const extension& e, bool last_step) {
    if (e.ends) return finish_reason::stop_token;
    if (options_.stop) {
      const std::size_t lane = g.live[e.parent].lane;
      lanes_[lane].tokens.push_back(e.token);
      step_context context = context_of(lane);
      context.draws = context.draws.at(lanes_[lane].tokens.size());
      const bool stop = options_.stop(context);
      lanes_[lane].tokens.pop_back();
      if (stop) return options_.stop.why();
    }
    return last_step ? detail::limit_reached(options_, prompt_.size(), step_ + 1) : finish_reason::none;
  }

  /// Ends a hypothesis with a token, and keeps it if it is good enough.
  [[nodiscard]] candidate_fate end_with(group& g, extension& e) {
    const live_hypothesis& parent = g.live[e.parent];
    if (!e.ends && !fulfilled_after(parent.lane, e.token)) return candidate_fate::unfulfilled;
    ++g.finished_count;
    live_hypothesis ended = continued(parent, e);
    const final_score score = scored(ended, step_ + 1);
    if (!g.finished.keeps(score.total)) return candidate_fate::not_kept;
    ended.link = e.node = links_.add(parent.link, e.token);
    keep(g, ended, score, e.finish, e.finish == finish_reason::stop_token ? e.token : no_token);
    return candidate_fate::finished;
  }

  void live_on(group& g, extension& e) {
    const live_hypothesis& parent = g.live[e.parent];
    live_hypothesis live = continued(parent, e);
    live.link = e.node = links_.add(parent.link, e.token);
    g.next.push_back(live);
  }

  /// A hypothesis with one token more, but for its link.
  static live_hypothesis continued(const live_hypothesis& parent, const extension& e) {
    return {parent.link, parent.lane, parent.log_prob + e.log_prob, parent.diversity + e.diversity};
  }

  [[nodiscard]] bool fulfilled_after(std::size_t lane, token_id token) {
    if (!lanes_[lane].constraint) return true;
    probe_ = lanes_[lane].constraint;
    probe_.accept(token);
    return probe_.finished();
  }

  static void keep(group& g, const live_hypothesis& ended, const final_score& score, finish_reason why, token_id end) {
    g.finished.add({ended.link, ended.log_prob, ended.diversity, score.coverage, score.total, why, end});
  }

  // ---- scores and ends

  /// What length and coverage are applied to.
  [[nodiscard]] double running_score(const live_hypothesis& live) const {
    return options_.diversity.counts == penalty::in_score ? live.log_prob + live.diversity : live.log_prob;
  }

  [[nodiscard]] final_score scored(const live_hypothesis& live, std::size_t length) {
    const double coverage = options_.coverage.off() ? 0 : options_.coverage.score(lanes_[live.lane].attention);
    return {options_.length_penalty(running_score(live), length) + coverage, coverage};
  }

  void end_group_if_settled(group& g, bool last_step) {
    if (g.next.empty()) {
      g.end = last_step ? search_end::length : search_end::exhausted;
    } else if (options_.early_stopping == early_stopping::first_n) {
      const double wanted = options_.patience * static_cast<double>(group_width());
      if (static_cast<double>(g.finished_count) >= wanted) g.end = search_end::enough;
    } else if (g.finished.full() && !can_improve(g)) {
      g.end = search_end::settled;
    }
    if (g.end == search_end::none) return;
    g.next.clear();
    end_ = g.end;
  }

  /// Whether one of the hypotheses that go on may beat the worst finished one, as far as the mode looks.
  [[nodiscard]] bool can_improve(const group& g) {
    const std::size_t now = step_ + 1;
    if (options_.early_stopping == early_stopping::heuristic_with_ended) {
      const live_hypothesis first = continued(g.live[found_.front().parent], found_.front());
      return scored(first, now).total > g.finished.worst();
    }
    return std::ranges::any_of(g.next, [&](const live_hypothesis& live) {
      const double best = options_.early_stopping == early_stopping::exact
                              ? options_.length_penalty.best(running_score(live), now, room_)
                              : scored(live, now).total;
      return best > g.finished.worst();
    });
  }

  void keep_unfinished(group& g, const std::vector<live_hypothesis>& all, std::size_t length) {
    if (g.end != search_end::none) return;
    for (const live_hypothesis& live : all) {
      const final_score score = scored(live, length);
      if (g.finished.keeps(score.total)) keep(g, live, score, finish_reason::cancelled, no_token);
    }
  }

  void end_all(search_end why) {
    for (group& g : groups_) {
      if (g.end == search_end::none) g.end = end_ = why;
      g.next.clear();
    }
  }

  // ---- between steps

  /// Notes the tokens with which a group goes on, or would if there were room.
  void choose(bool last_step) {
    std::size_t left = group_width();
    for (const extension& e : found_) {
      if (left == 0 || e.ends || (e.fate != candidate_fate::live && !last_step)) continue;
      chosen_.push_back(e.token);
      --left;
    }
  }
  void choose_for_ended() {
    const auto& choice = options_.diversity.ended_choice;
    if (choice) chosen_.insert(chosen_.end(), group_width(), *choice);
  }

  void hand_on() {
    parents_.clear();
    for (const group& g : groups_) {
      for (const live_hypothesis& live : g.next) parents_.push_back(live.lane);
    }
    lanes_.hand_on(parents_);
    std::size_t i = 0;
    for (group& g : groups_) {
      for (live_hypothesis& live : g.next) {
        live.lane = parents_[i++];
        beam_lane& lane = lanes_[live.lane];
        lane.last = links_.token(live.link);
        if (needs_context_) {
          lane.tokens.reserve(prompt_.size() + std::min(room_, most_reserved));
          lane.tokens.push_back(lane.last);
        }
        if (lane.constraint) lane.constraint.accept(lane.last);
      }
      g.live.swap(g.next);
      g.next.clear();
    }
  }

  void trace(std::size_t g) {
    if (!options_.on_candidate) return;
    for (std::size_t rank = 0; rank < found_.size(); ++rank) {
      const extension& e = found_[rank];
      const live_hypothesis& parent = groups_[g].live[e.parent];
      const live_hypothesis whole = continued(parent, e);
      options_.on_candidate(
          {step_, g, rank, parent.link, e.node, e.token, e.log_prob, whole.log_prob, whole.diversity, e.fate});
    }
  }

  /// Tells the caller of the step that ends here; whether to go on.
  [[nodiscard]] bool report_step() {
    if (!options_.on_step) return true;
    hypothesis_link common = no_link;
    const auto also = [&](hypothesis_link link) { common = common == no_link ? link : links_.common(common, link); };
    std::size_t live = 0, finished = 0;
    const finished_hypothesis* best = nullptr;
    for (const group& g : groups_) {
      for (const live_hypothesis& one : g.next) also(one.link);
      live += g.next.size();
      finished += g.finished_count;
      const auto kept = g.finished.kept();
      if (!kept.empty() && (best == nullptr || kept.front().score > best->score)) best = &kept.front();
    }
    // Of those that have ended only the best can be the result.
    if (best != nullptr) also(best->link);
    shared_.clear();
    if (common != no_link && links_.length(common) > reported_) {
      links_.tokens(common, shared_, reported_);
      reported_ = links_.length(common);
    }
    return options_.on_step({shared_, step_, live, finished}) || ended();
  }

  beam_options options_;
  std::vector<token_id> prompt_;
  draw_stream draws_;
  std::size_t room_ = 0;        ///< how many tokens can be generated
  bool needs_context_ = false;  ///< whether lanes keep their tokens
  std::size_t step_ = 0;
  bool not_finite_ = false;
  search_end end_ = search_end::none;
  std::size_t reported_ = 0;

  hypothesis_links links_;
  beam_lanes lanes_;
  std::vector<group> groups_;
  candidates row_;
  std::vector<extension> found_;
  stage_quotas stages_;
  any_constraint probe_;
  std::vector<std::size_t> parents_;
  std::vector<token_id> chosen_, wanted_, shared_;
  std::vector<token_dissimilarity> changes_;
  std::vector<std::uint64_t> mask_;
};

}  // namespace decant
