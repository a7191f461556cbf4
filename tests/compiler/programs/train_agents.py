"""Reinforcement learning: buffers of experience outside, policies and values inside."""

import random
from collections import deque, namedtuple
from dataclasses import dataclass, field

import attrs
import numpy as np

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.distributions import Categorical, Normal
from oneflow_lite.nn import functional as F
from tests.compiler.programs.kit import STEPS, program


class Corridor:
    """A walk along a line, rewarded on its right side."""

    def __init__(self, length=3.0):
        self.length = length

    def reset(self):
        self.state = np.random.uniform(-0.1, 0.1, size=2).astype(np.float32)
        return self.state.copy()

    def step(self, action):
        self.state[1] += 0.3 * (1 if action else -1)
        self.state[0] = np.clip(self.state[0] + self.state[1], -self.length, self.length)
        return self.state.copy(), float(self.state[0] > 0), False, {}


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(2, 8)
        self.dropout = nn.Dropout(p=0.1)
        self.action_head, self.value_head = nn.Linear(8, 2), nn.Linear(8, 1)

    def forward(self, x):
        x = F.relu(self.dropout(self.affine1(x)))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


@program
def reinforce_with_baseline(compiled):
    """a policy gradient from an episode's lists, returns by a loop over deque.appendleft"""
    policy, env, gamma = Policy(), Corridor(), 0.99
    optimizer = flow.optim.Adam(policy.parameters(), lr=1e-2)
    eps = np.finfo(np.float32).eps.item()

    @compiled
    def finish_episode(states, actions, returns):
        returns = (returns - returns.mean()) / (returns.std() + eps)
        probs, values = policy(states)
        log_probs = Categorical(probs, validate_args=False).log_prob(actions)
        advantage = returns - values.detach().squeeze(1)
        policy_losses = [-log_prob * R for log_prob, R in zip(log_probs, advantage, strict=True)]
        optimizer.zero_grad()
        loss = flow.stack(policy_losses).sum() + F.smooth_l1_loss(values.squeeze(1), returns)
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(STEPS):
        state, states, actions, rewards = env.reset(), [], [], []
        for _ in range(8):
            with flow.no_grad():
                probs, _ = policy(flow.from_numpy(state).unsqueeze(0))
            actions.append(Categorical(probs).sample().item())
            states.append(state)
            state, reward, _, _ = env.step(actions[-1])
            rewards.append(reward)
        R, returns = 0, deque()
        for r in rewards[::-1]:
            R = r + gamma * R
            returns.appendleft(R)
        loss = finish_episode(
            flow.tensor(np.array(states)), flow.tensor(actions), flow.tensor(list(returns))
        )
        yield loss, policy, optimizer


Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque(maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


@program
def dqn_target_network(compiled):
    """a Q-network with a target network: named tuples of lists, soft updates of a state_dict"""
    BATCH_SIZE, GAMMA, TAU = 8, 0.99, 0.05
    policy_net, target_net = (
        nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2)) for _ in range(2)
    )
    target_net.load_state_dict(policy_net.state_dict())
    optimizer = flow.optim.AdamW(policy_net.parameters(), lr=1e-2, amsgrad=True)
    memory, env = ReplayMemory(100), Corridor()

    @compiled
    def optimize_model(transitions):
        batch = Transition(*zip(*transitions, strict=True))
        state_batch, action_batch = flow.cat(batch.state), flow.cat(batch.action)
        next_states, reward_batch = flow.cat(batch.next_state), flow.cat(batch.reward)
        state_action_values = policy_net(state_batch).gather(1, action_batch)
        with flow.no_grad():
            next_state_values = target_net(next_states).max(1).values
        expected = (next_state_values * GAMMA) + reward_batch
        loss = F.smooth_l1_loss(state_action_values, expected.unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        flow.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
        optimizer.step()
        return loss.detach()

    state = flow.tensor(env.reset()).unsqueeze(0)
    while len(memory) < STEPS + BATCH_SIZE:
        action = flow.tensor([[random.randrange(2)]])
        observation, reward, *_ = env.step(action.item())
        next_state = flow.tensor(observation).unsqueeze(0)
        memory.push(state, action, next_state, flow.tensor([reward]))
        state = next_state
        if len(memory) < BATCH_SIZE:
            continue
        loss = optimize_model(memory.sample(BATCH_SIZE))
        target_net_state_dict, policy_net_state_dict = (
            target_net.state_dict(),
            policy_net.state_dict(),
        )
        for key in policy_net_state_dict:
            mixed = policy_net_state_dict[key] * TAU + target_net_state_dict[key] * (1 - TAU)
            target_net_state_dict[key] = mixed
        target_net.load_state_dict(target_net_state_dict)
        yield loss, policy_net, target_net, optimizer


@dataclass
class PPOConfig:
    clip_coef: float = 0.2
    ent_coef: float = 0.01
    vf_coef: float = 0.5
    gae_lambda: float = 0.95
    gamma: float = 0.99
    max_grad_norm: float = 0.5
    norm_adv: bool = True
    widths: list = field(default_factory=lambda: [2, 8])


SQRT2 = np.sqrt(2)


def layer_init(layer, std=SQRT2, bias_const=0.0):
    nn.init.orthogonal_(layer.weight, std)
    nn.init.constant_(layer.bias, bias_const)
    return layer


class Agent(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.critic = nn.Sequential(
            layer_init(nn.Linear(*widths)), nn.Tanh(), layer_init(nn.Linear(widths[-1], 1), 1.0)
        )
        self.actor = nn.Sequential(
            layer_init(nn.Linear(*widths)), nn.Tanh(), layer_init(nn.Linear(widths[-1], 2), 0.01)
        )

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(x), validate_args=False)
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x).squeeze(-1)


@program
def ppo_clip(compiled):
    """proximal policy optimization: advantages backwards in time, a dictionary of floats"""
    args = PPOConfig()
    agent = Agent(args.widths)
    optimizer = flow.optim.Adam(agent.parameters(), lr=2.5e-3, eps=1e-5)

    @compiled
    @flow.no_grad()
    def advantages_of(rewards, values, dones):
        advantages, lastgaelam = flow.zeros_like(rewards), 0
        for t in reversed(range(rewards.shape[0] - 1)):
            nonterminal = 1.0 - dones[t + 1]
            delta = rewards[t] + args.gamma * values[t + 1] * nonterminal - values[t]
            lastgaelam = delta + args.gamma * args.gae_lambda * nonterminal * lastgaelam
            advantages[t] = lastgaelam
        return advantages, advantages + values

    @compiled
    def update(obs, actions, logprobs, advantages, returns):
        _, newlogprob, entropy, newvalue = agent.get_action_and_value(obs, actions)
        logratio = newlogprob - logprobs
        ratio = logratio.exp()
        with flow.no_grad():
            approx_kl = ((ratio - 1) - logratio).mean()
        if args.norm_adv:
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        pg_loss1 = -advantages * ratio
        pg_loss2 = -advantages * flow.clamp(ratio, 1 - args.clip_coef, 1 + args.clip_coef)
        pg_loss = flow.max(pg_loss1, pg_loss2).mean()
        v_loss = 0.5 * ((newvalue - returns) ** 2).mean()
        loss = pg_loss - args.ent_coef * entropy.mean() + v_loss * args.vf_coef
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
        optimizer.step()
        return {"loss": loss.item(), "approx_kl": approx_kl.item(), "v": v_loss.item()}

    for _ in range(20):
        obs, rewards, dones = flow.randn(8, 2), flow.rand(8), flow.zeros(8)
        with flow.no_grad():
            actions, logprobs, _, values = agent.get_action_and_value(obs)
        advantages, returns = advantages_of(rewards, values, dones)
        logs = [update(obs, actions, logprobs, advantages, returns) for _ in range(2)]
        yield logs, advantages, agent, optimizer


@attrs.define
class SACConfig:
    gamma: float = 0.98
    tau: float = 0.05
    target_entropy: float = -1.0
    lrs: dict = attrs.field(factory=lambda: {"actor": 3e-3, "critic": 1e-2, "alpha": 1e-2})


class SACAgent:
    def __init__(self, config):
        self.config = config
        self.actor = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
        self.critics, self.targets = (
            nn.ModuleList(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)) for _ in "ab")
            for _ in range(2)
        )
        self.targets.load_state_dict(self.critics.state_dict())
        self.log_alpha = flow.zeros(1, requires_grad=True)
        make = {"actor": self.actor.parameters(), "critic": self.critics.parameters()}
        make["alpha"] = [self.log_alpha]
        self.optimizers = {
            name: flow.optim.Adam(params, lr=config.lrs[name]) for name, params in make.items()
        }

    def act(self, state):
        mean, log_std = self.actor(state).chunk(2, -1)
        normal = Normal(mean, log_std.clamp(-5, 2).exp(), validate_args=False)
        u = normal.rsample()
        action = flow.tanh(u)
        return action, (normal.log_prob(u) - flow.log(1 - action.pow(2) + 1e-6)).sum(-1)

    def minimize(self, name, loss):
        self.optimizers[name].zero_grad()
        loss.backward()
        self.optimizers[name].step()
        return loss.detach()

    def update(self, s, a, r, s2):
        with flow.no_grad():
            a2, logp2 = self.act(s2)
            q2 = flow.min(*(q(flow.cat([s2, a2], -1)).squeeze(-1) for q in self.targets))
            y = r + self.config.gamma * (q2 - self.log_alpha.exp() * logp2)
        sa = flow.cat([s, a], -1)
        q_loss = sum(F.mse_loss(q(sa).squeeze(-1), y) for q in self.critics)
        losses = {"critic": self.minimize("critic", q_loss)}
        new, logp = self.act(s)
        q = flow.min(*(q(flow.cat([s, new], -1)).squeeze(-1) for q in self.critics))
        losses["actor"] = self.minimize("actor", (self.log_alpha.exp().detach() * logp - q).mean())
        error = (logp + self.config.target_entropy).detach()
        losses["alpha"] = self.minimize("alpha", -(self.log_alpha * error).mean())
        with flow.no_grad():
            pairs = zip(self.targets.parameters(), self.critics.parameters(), strict=True)
            for target, online in pairs:
                target.lerp_(online, self.config.tau)
        return losses


@program
def soft_actor_critic(compiled):
    """a soft actor-critic agent as an object: three optimizers in a dict, targets by lerp_"""
    agent = SACAgent(SACConfig())
    update = compiled(agent.update)
    for _ in range(STEPS):
        s, a = flow.randn(8, 2), flow.rand(8, 1) * 2 - 1
        losses = update(s, a, -(s[:, 0] ** 2), s + 0.1 * a)
        yield losses, agent.actor, agent.critics, agent.targets, agent.log_alpha, agent.optimizers
